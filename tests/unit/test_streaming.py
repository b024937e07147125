"""Streams without Spark: what their record means, which way a backfill takes, what Spark's progress tells."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backcast.cli.child import Signals
from backcast.cli.render.stream import render_backfill, render_stream, render_streams
from backcast.errors import Conflict, InvalidRequest, Refused, StateConflict
from backcast.model.live import LiveState, LiveStep, Stop, StreamStatus
from backcast.model.manifest import LivePolicy, Manifest
from backcast.model.stream import StreamSpec, StreamWrite
from backcast.model.stream_backfill import (
    BEGUN,
    DONE,
    PLANNED,
    RESUMED,
    STOPPED,
    StreamBackfill,
    Way,
    choose,
    refuse_another,
    refuse_unread,
    unfinished,
)
from backcast.model.table import PublishMode
from backcast.project.clock import SystemClock
from backcast.project.config import load_project
from backcast.sources.kafka.streaming import starting_offsets
from backcast.streams.progress import completed
from backcast.testing.samples import FIRST_DAY, sample_manifest
from backcast.testing.store_stream_contract import sample_batch, sample_stream
from backcast.verbs.standing import at_rest, standing
from tests.unit.checkpoints import QUERY, new_checkpoint
from tests.unit.cli_screens import shown
from tests.unit.test_config_streams import _GOOD, _STREAM


@pytest.fixture
def spec(tmp_path: Path) -> StreamSpec:
    (tmp_path / "backcast.yaml").write_text(_GOOD + _STREAM)
    return load_project(tmp_path, environ={}).stream("live")


def status(**changed: object) -> StreamStatus:
    known = {
        "name": "live",
        "pipeline": "daily",
        "topic": "orders",
        "dataset": "daily",
        "table": "t",
        "checkpoint": "c",
    }
    return StreamStatus.model_validate({**known, "external": False, **changed})


def test_the_state_of_a_stream_is_what_is_on_record_and_who_lives() -> None:
    running, failed = sample_stream().as_json(), sample_stream(LiveState.FAILED).as_json()
    assert status().state == "never started"
    assert status(alive=True).state == "starting"
    assert status(live=running, alive=True).state == "running"
    assert status(live=running, alive=True, asked=Stop.BOUNDARY).state == "stopping"
    assert status(live=running).state == "died"
    assert status(live=failed).state == "failed"
    assert status(live=failed, alive=True).state == "starting"
    assert status(external=True).state == "external"


@pytest.mark.parametrize(
    ("mode", "policy", "alive", "way"),
    [
        (PublishMode.REPLACE, LivePolicy.FAIL, True, Way.PAUSE),
        (PublishMode.REPLACE, LivePolicy.FAIL, False, Way.BESIDE),
        (PublishMode.REPLACE, LivePolicy.KEEP, True, Way.BESIDE),
        (PublishMode.REPLACE, LivePolicy.FREEZE, True, Way.BESIDE),
        (PublishMode.APPEND, LivePolicy.FAIL, True, Way.BESIDE),
        (PublishMode.MERGE, LivePolicy.FAIL, True, Way.BESIDE),
    ],
)
def test_a_stream_is_paused_only_where_the_backfill_could_not_be_published_beside_it(
    spec: StreamSpec, mode: PublishMode, policy: LivePolicy, alive: bool, way: Way
) -> None:
    settings = spec.pipeline.settings.model_copy(update={"publish_mode": mode, "live_policy": policy})
    declared = replace(spec, pipeline=replace(spec.pipeline, settings=settings))
    found, why = choose(declared, status(alive=alive), pause=False)
    assert found is way, why
    assert choose(declared, status(alive=alive), pause=True)[0] is Way.PAUSE
    assert choose(replace(declared, external=True), status(), pause=True)[0] is Way.PAUSE, "others stop it"


def test_a_backfill_is_known_by_its_steps_until_it_is_over() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    begun = StreamBackfill(
        stream="live", pipeline="daily", start="2026-01-01", end="2026-01-02", way=Way.PAUSE, why="", resume=True
    )
    told = [(BEGUN, begun.as_json()), (STOPPED, {}), (PLANNED, {"run_id": "r-1"}), (DONE, {})]
    steps = [LiveStep(stream="live", number=n, at=at, name=name, data=data) for n, (name, data) in enumerate(told)]
    found = unfinished(steps[:3])
    assert found == begun.model_copy(update={"steps": (STOPPED, PLANNED), "run_id": "r-1"})
    assert unfinished(steps) is None
    once_more = {"query_id": "q", "batch": 7, "ends": {"0": 5}}
    steps[3] = LiveStep(stream="live", number=3, at=at, name=STOPPED, data=once_more)
    stopped = begun.model_copy(update={"steps": (STOPPED,), "query_id": "q", "batch": 7, "ends": {0: 5}})
    assert unfinished(steps) == stopped, "what was planned while it stood elsewhere is forgotten"
    theirs = stopped.model_copy(update={"external": True})
    assert "start it again where it runs: it goes on behind batch 7" in shown(render_backfill(theirs, status(), at))
    theirs = theirs.model_copy(update={"steps": (STOPPED, RESUMED)})
    assert "goes on: its checkpoint has moved since batch 7" in shown(render_backfill(theirs, status(), at))
    with pytest.raises(StateConflict, match="2026-01-01 to 2026-01-02 on stream live is not over"):
        refuse_another(found, "2026-01-01", "2026-01-03")


def test_a_run_must_not_read_what_the_stream_has_still_to_read(spec: StreamSpec) -> None:
    manifest = _reading(sample_manifest(), spec.input, ends={0: 10, 1: 5})
    refuse_unread(manifest, spec, {0: 10, 1: 7})
    with pytest.raises(Refused, match=r"has not read yet \(0=8\.\.10\)"):
        refuse_unread(manifest, spec, {0: 8, 1: 5})
    with pytest.raises(Refused, match=r"has not read yet \(0=0\.\.10, 1=0\.\.5\)"):
        refuse_unread(manifest, spec, {})
    refuse_unread(manifest, replace(spec, write=StreamWrite.MERGE), {})


def _reading(manifest: Manifest, name: str, ends: dict[int, int]) -> Manifest:
    from backcast.model.log import Isolation, LogPin, PinnedPartition

    partitions = tuple(
        PinnedPartition(partition=each, start=0, end=end, log_start=0, log_end=end, survives_until=None)
        for each, end in ends.items()
    )
    log = LogPin(
        topic="shop.orders",
        topic_id="t",
        isolation=Isolation.COMMITTED,
        cleanup=(),
        retention_ms=None,
        retention_bytes=None,
        timestamp_type="CreateTime",
        partitions=partitions,
        to_end=False,
        slices={},
    )
    pin = manifest.inputs[0].model_copy(update={"name": name, "log": log})
    return manifest.model_copy(update={"inputs": (pin,)})


def test_what_spark_tells_about_a_batch_completes_it() -> None:
    told = {
        "numInputRows": 12,
        "eventTime": {"watermark": "2026-01-01T10:00:00.000Z"},
        "stateOperators": [{"numRowsDroppedByWatermark": 2}, {"numRowsDroppedByWatermark": 1}],
        "sources": [{"latestOffset": {"orders": {"0": 31, "1": 4}}}],
        "durationMs": {"triggerExecution": 1500, "addBatch": 900},
    }
    found = completed(sample_batch(2), told, "orders")
    assert (found.rows_in, found.late_rows, found.seconds, found.operators) == (12, 3, 1.5, 2)
    assert found.watermark == datetime(2026, 1, 1, 10, tzinfo=UTC)
    assert found.lag == 1 + 4, "behind the end of each partition, also of one that the batch did not know"
    bare = completed(
        sample_batch(2), {"eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}, "sources": [{}]}, "orders"
    )
    assert (bare.watermark, bare.log_end, bare.rows_in, bare.operators) == (None, {}, 0, None)


@pytest.mark.parametrize("pause", [True, False])
def test_a_stream_whose_checkpoint_cannot_be_backed_up_is_not_stopped(spec: StreamSpec, pause: bool) -> None:
    """With the live policy `fail` it would be paused without being asked for, too."""
    far = replace(spec, checkpoint="s3a://lake/checkpoints/live")
    with pytest.raises(Refused, match="s3a://lake/checkpoints/live cannot be backed up from here") as told:
        choose(far, status(alive=True), pause=pause)
    assert ("without --pause" in told.value.hint) == pause
    with pytest.raises(Refused, match="cannot be backed up from here") as told:
        choose(replace(far, external=True), status(external=True), pause=True)
    assert "mount it, and declare where it is then" in told.value.hint
    assert choose(replace(spec, checkpoint="file:///srv/live"), status(alive=True), pause=pause)[0] is Way.PAUSE
    assert choose(far, status(alive=False), pause=False)[0] is Way.BESIDE


def test_the_screen_of_a_stream_says_where_it_stands_and_what_to_type() -> None:
    now, failed = FIRST_DAY + timedelta(seconds=90), sample_stream(LiveState.FAILED, "a record cannot be decoded")
    landed = sample_batch(2, landed=True, version="77", rows_in=10, rows_out=9, log_end={0: 45}, seconds=1.5)
    batches = [sample_batch(3).as_json(), landed.as_json()]
    running = status(live=sample_stream().as_json(), alive=True, batches=batches, next="backcast stream stop live")
    page = shown(render_stream(running, now))
    assert page.startswith("live  running  for 1 min 30 s\n")
    assert "position    batch 2: 0=30, 15 records behind then" in page
    assert re.search(r"3 +1 min ago +begun", page)
    assert re.search(r"2 +1 min ago +10 +9 +0 +0 +15 +1\.5 s +77", page)
    assert page.endswith("Next  backcast stream stop live")
    slow = sample_batch(2, landed=True, version="7" * 19, rows_in=2881, rows_out=3240, log_end={0: 45}, seconds=154.0)
    assert "LATE  ASIDE  LAG" in shown(render_stream(status(batches=[slow.as_json()]), now)), "only the version is cut"
    page = shown(render_stream(status(live=failed.as_json(), next="backcast stream start live"), now))
    assert "why         a record cannot be decoded" in page
    lines = shown(render_streams([running, status(external=True, name="elsewhere")], now)).splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["live", "running"], ["elsewhere", "external"]]


def test_a_stream_that_others_run_stands_where_its_checkpoint_does(spec: StreamSpec, tmp_path: Path) -> None:
    folder, topic = tmp_path / "theirs", spec.source.topic
    theirs = replace(spec, external=True, checkpoint=str(folder))
    found, unknown = standing(theirs)
    assert found is None
    assert str(folder) in unknown
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").write_text('{"id": "q"}')
    for batch, end in enumerate((10, 20, 30)):
        plan = {"batchWatermarkMs": 1_767_225_600_000, "batchTimestampMs": 1_767_229_200_000, "conf": {}}
        lines = ["v1", json.dumps(plan), json.dumps({topic: {"0": end, "1": 7}})]
        (folder / "offsets" / str(batch)).write_text("\n".join(lines))
        if batch < 2:
            (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs": 0}')
    found, unknown = standing(theirs)
    assert found is not None, unknown
    assert (found.batch, found.ends) == (1, {0: 20, 1: 7}), "the newest batch is planned only"
    now = found.begun + timedelta(minutes=3)
    told = status(external=True, position=found.as_json(), next="backcast stream lag live")
    page = shown(render_stream(told, now))
    assert "position    batch 1: 0=20, 1=7, begun 3 min ago, by its checkpoint" in page
    assert "watermark 2026-01-01 00:00" in page
    assert page.endswith("Next  backcast stream lag live")
    assert re.search(r"live +external +3 min ago +1 +orders", shown(render_streams([told], now)))
    far, why = standing(replace(theirs, checkpoint="s3a://lake/theirs"))
    assert far is None
    assert why.startswith("s3a://lake/theirs: only ")
    assert f"position    not known: {why[:30]}" in shown(render_stream(status(external=True, unknown=why), now))


def test_a_stream_of_others_is_stopped_when_somebody_says_so_and_nothing_moves_for_as_long_as_its_trigger(
    spec: StreamSpec, tmp_path: Path
) -> None:
    folder = new_checkpoint(tmp_path / "theirs", batches=2)
    source = replace(spec.source, topic="orders")
    theirs = replace(spec, external=True, checkpoint=str(folder), trigger=timedelta(seconds=5), source=source)
    query_id, stands = at_rest(theirs, Meanwhile(lambda: None), stopped=True)
    assert (query_id, stands.batch, stands.ends) == (QUERY, 1, {0: 20, 1: 20})
    with pytest.raises(Conflict, match="may be running") as told:
        at_rest(theirs, Meanwhile(lambda: None), stopped=False)
    assert "--stopped" in told.value.hint
    moving = Meanwhile(lambda: new_checkpoint(folder, batches=2, planned=1))
    with pytest.raises(Conflict, match="the stream is running"):
        at_rest(theirs, moving, stopped=True)
    assert moving.slept == 7.0
    with pytest.raises(Refused, match="batch 2 of stream live was begun and is not over") as refused:
        at_rest(theirs, Meanwhile(lambda: None), stopped=True)
    assert "availableNow" in refused.value.hint


class Meanwhile(SystemClock):
    """What others do while somebody waits."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act, self.slept = act, 0.0

    def sleep(self, seconds: float) -> None:
        self.slept = seconds
        self._act()


def test_a_start_is_a_word_or_offsets_of_the_topic_itself() -> None:
    assert starting_offsets("latest", "orders") == "latest"
    assert starting_offsets('{"orders": {"0": 5, "1": -2}}', "orders") == '{"orders": {"0": 5, "1": -2}}'
    for wrong in ("yesterday", '{"others": {"0": 1}}', '{"orders": {}}', '{"orders": {"a": 1}}', "[]", "7"):
        with pytest.raises(InvalidRequest, match="`starting` of a stream of orders cannot be"):
            starting_offsets(wrong, "orders")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_first_stop_asks_and_only_one_that_comes_later_insists(number: int) -> None:
    """A service manager signals all processes at once, and the command passes on what it has got itself."""
    before, now = signal.getsignal(number), [100.0]
    with Signals(_nothing, lambda: now[0]) as heard:
        assert heard() is None
        for _ in range(3):
            os.kill(os.getpid(), number)
            now[0] += 0.3
            assert heard() is Stop.BOUNDARY
        now[0] += 2.0
        os.kill(os.getpid(), signal.SIGINT)
        assert heard() is Stop.NOW
    assert signal.getsignal(number) is before


def test_a_stream_that_was_started_to_survive_its_terminal_does() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals(_nothing) as heard:
            heard()
            os.kill(os.getpid(), signal.SIGHUP)
            assert heard() is None
    finally:
        signal.signal(signal.SIGHUP, before)


def _nothing() -> None:
    """There is no Spark here to prepare."""
