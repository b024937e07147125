"""A run that holds back: for a pace, a pause, its hours, its commits, and for a live stream that has fallen behind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from backcast.cli.progress import ProgressView
from backcast.cli.render.plan import render_plan
from backcast.cli.screen import Screen
from backcast.errors import BackcastError, ConfigError, InvalidRequest, StateConflict, Unavailable
from backcast.model.live import LiveBatch
from backcast.model.log import OffsetRange, PartitionState, read_by_partition, unread
from backcast.model.replay import USUAL_BATCH, batch_records
from backcast.model.report import Plan, Progress
from backcast.model.run import Holder, Lease
from backcast.model.stream import StreamSpec
from backcast.model.throttle import BATCH_SECONDS, Behind, Throttle, Work
from backcast.pacing import LiveLags
from backcast.project.config import load_project
from backcast.run.brake import LONGEST_SECONDS, LOOK_SECONDS, Brake
from backcast.streams.driving import busiest, size_of
from backcast.testing.samples import sample_manifest
from backcast.testing.store_stream_contract import sample_batch
from tests.unit.cli_screens import shown
from tests.unit.test_config_streams import _GOOD, _STREAM

if TYPE_CHECKING:
    from backcast.world import World

HELD = Lease(
    name="stream/live",
    token=1,
    holder=Holder(owner="ann", host="here", pid=1, started="now"),
    expires_at=datetime(2026, 1, 1, tzinfo=UTC),
)
LAGS = Throttle(live_lag=50, streams=("live",))


@dataclass
class Watch:
    """A clock that nobody waits for."""

    seconds: float = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@dataclass
class Braked:
    """A brake, and what it did."""

    throttle: Throttle
    found: Iterator[Behind | None] = field(default_factory=lambda: repeat(None))
    """How far the stream is behind, each time that somebody looks."""
    clock: Watch = field(default_factory=Watch)
    said: list[str] = field(default_factory=list)

    def brake(self) -> Brake:
        return Brake(lambda: self.throttle, lambda _: next(self.found), self.clock, lambda: None, self.said.append)


def behind(*records: int) -> Iterator[Behind]:
    """So far, and at last for ever."""
    return chain(map(Behind, records), repeat(Behind(records[-1])))


def test_a_job_that_was_faster_than_the_pace_rests_until_it_is_kept() -> None:
    done = Braked(Throttle(rows_per_second=100))
    brake = done.brake()
    brake.before_a_job()
    brake.after_a_job(Work(1_000, 4.0))
    assert done.clock.seconds == 0, "nothing may follow"
    brake.before_a_job()
    assert done.clock.seconds == pytest.approx(6.0)
    assert done.said[0] == "rests 6 s"
    brake.before_a_job()
    brake.after_a_job(Work(1_000, 40.0))
    brake.rest()
    assert done.clock.seconds == pytest.approx(6.0), "once for each job, and the last was slow enough"


def test_the_time_that_something_else_took_since_the_job_counts_as_rest() -> None:
    done = Braked(Throttle(rows_per_second=100))
    brake = done.brake()
    brake.after_a_job(Work(1_000, 4.0))
    done.clock.seconds += 5
    brake.before_a_job()
    assert done.clock.seconds == pytest.approx(6.0)


def test_no_partition_is_read_faster_than_its_pace() -> None:
    """The busiest one decides, however many others there are."""
    throttle = Throttle(rows_per_second=1_000, per_partition=100)
    assert throttle.rest(Work(1_000, 4.0, busiest=900)) == pytest.approx(5.0)
    assert throttle.rest(Work(9_000, 4.0, busiest=500)) == pytest.approx(5.0), "all of them together were too fast"
    assert throttle.rest(Work(10, 4.0)) == 0, "it read no topic"
    ranges = [
        (OffsetRange(partition=0, start=0, end=10), OffsetRange(partition=1, start=5, end=6)),
        (OffsetRange(partition=0, start=8, end=20), OffsetRange(partition=0, start=2, end=4)),
    ]
    assert read_by_partition(ranges) == {0: 20, 1: 1}, "what chunks of one job share is read once"


def test_a_job_that_wrote_more_bytes_than_a_minute_may_have_rests_until_that_is_kept() -> None:
    throttle = Throttle(bytes_per_minute=6_000, rows_per_second=1_000)
    assert throttle.rest(Work(10, 4.0, bytes=1_500)) == pytest.approx(11.0)
    assert throttle.rest(Work(10, 40.0, bytes=1_500)) == 0
    assert Throttle().rest(Work(10, 4.0, bytes=10**12)) == 0


def test_outside_its_hours_no_job_begins_and_it_says_until_when() -> None:
    done = Braked(Throttle(hours="00:01-23:59"))
    done.brake().before_a_job()
    assert done.clock.seconds == pytest.approx(60)
    assert done.said[0] == "rests until 2026-01-01 00:01 UTC: jobs begin at 00:01-23:59 UTC only"


def test_behind_its_hours_a_stream_is_waited_for_with_patience_of_its_own() -> None:
    """A night is longer than anybody waits for a stream: what was waited before counts for nothing."""
    done = Braked(Throttle(hours="23:00-00:05", live_lag=50, streams=("live",)), behind(90))
    done.brake().before_a_job()
    assert done.clock.seconds == pytest.approx(23 * 3600 + LONGEST_SECONDS)


def test_no_more_jobs_commit_in_any_hour_than_may() -> None:
    done = Braked(Throttle(commits_per_hour=2))
    brake, start = done.brake(), done.clock.now()
    ago = [start - timedelta(minutes=each) for each in (10, 59, 59.5)]
    brake.commits = lambda: [each for each in ago if each > done.clock.now() - timedelta(hours=1)]
    brake.before_a_job()
    assert done.clock.seconds == pytest.approx(60)
    assert done.said[0] == "rests until 2026-01-01 00:01 UTC: 2 commits in an hour"


def test_a_throttle_that_is_changed_holds_at_once_also_while_it_rests() -> None:
    done = Braked(Throttle(pause_seconds=1_000))
    brake = done.brake()
    brake.after_a_job(Work(10, 1.0))

    def still() -> None:
        if done.clock.seconds >= 3:
            done.throttle = Throttle(pause_seconds=5, hours="00:00-00:30")

    brake.still = still
    brake.before_a_job()
    assert done.clock.seconds == pytest.approx(5)
    done.throttle = Throttle(hours="00:30-01:00")
    brake.before_a_job()
    assert done.clock.seconds == pytest.approx(6), "the rest of the job before is over, and hours are looked at again"
    assert done.said[-1] == "rests until 2026-01-01 00:30 UTC: jobs begin at 00:30-01:00 UTC only"


def test_a_batch_of_a_paced_query_is_what_the_pace_gives_in_a_few_seconds() -> None:
    def partitions() -> int:
        return 4

    assert batch_records(None, None, partitions) == USUAL_BATCH, "never a whole history at once"
    assert batch_records(7, None, partitions) == 7
    assert batch_records(None, Throttle(per_partition=100), partitions) == 4 * 100 * BATCH_SECONDS
    assert batch_records(None, Throttle(per_partition=100, rows_per_second=10), partitions) == 10 * BATCH_SECONDS
    assert batch_records(7, Throttle(rows_per_second=10), partitions) == 7
    assert batch_records(None, Throttle(rows_per_second=10**9), partitions) == USUAL_BATCH
    assert batch_records(None, Throttle(pause_seconds=5), partitions) == USUAL_BATCH


def test_what_a_batch_read_is_told_by_spark() -> None:
    """The first batch of a query does not say where it began, and a file is no partition."""
    topic = {"endOffset": {"orders": {"0": 150, "1": 90}}, "numInputRows": 60}
    files = {"startOffset": {"logOffset": 1}, "endOffset": {"logOffset": 2}, "numInputRows": 1}
    assert busiest({"sources": [{**topic, "startOffset": {"orders": {"0": 110, "1": 70}}}, files]}) == 40
    assert busiest({"sources": [{**topic, "startOffset": {"orders": {"0": 150}}}]}) == 90, "the partition is new"
    assert busiest({"sources": [{**topic, "startOffset": None}]}) == 60
    assert busiest({"sources": [files]}) == 0


def test_what_a_batch_wrote_is_told_by_its_files(tmp_path: Path) -> None:
    for name, size in (("part-0.parquet", 300), ("part-1.parquet", 40), (".part-0.parquet.crc", 7), ("_SUCCESS", 5)):
        (tmp_path / name).write_bytes(b"x" * size)
    assert size_of(tmp_path) == 340
    assert size_of(tmp_path / "nowhere") == 0


def test_a_pause_is_kept_also_after_a_slow_job() -> None:
    done = Braked(Throttle(rows_per_second=100, pause_seconds=5))
    brake = done.brake()
    brake.after_a_job(Work(1_000, 40.0))
    brake.rest()
    assert done.clock.seconds == pytest.approx(5.0)


def test_no_job_begins_while_a_live_stream_is_too_far_behind() -> None:
    done = Braked(LAGS, behind(90, 60, 50))
    done.brake().before_a_job()
    assert done.clock.seconds == pytest.approx(2 * LOOK_SECONDS)
    assert done.said == ["waits: stream live is 90 records behind", "waits: stream live is 60 records behind"]


def test_a_stream_that_never_catches_up_delays_a_job_and_does_not_end_the_run() -> None:
    done = Braked(LAGS, behind(90))
    brake = done.brake()
    for times in (1, 2):
        brake.before_a_job()
        assert done.clock.seconds == pytest.approx(times * LONGEST_SECONDS)


def test_a_stream_of_others_that_does_not_move_is_waited_for_once() -> None:
    """Nobody knows whether it runs at all."""
    stands = Behind(90, ((0, 5),), known_to_run=False)
    done = Braked(LAGS, repeat(stands))
    brake = done.brake()
    for _ in range(3):
        brake.before_a_job()
    assert done.clock.seconds == pytest.approx(LONGEST_SECONDS)
    done.found = chain([Behind(80, ((0, 6),), known_to_run=False)], repeat(Behind(50)))
    brake.before_a_job()
    assert done.clock.seconds == pytest.approx(LONGEST_SECONDS + LOOK_SECONDS), "it moves again"


def test_a_run_that_was_cancelled_stops_waiting() -> None:
    done = Braked(LAGS, behind(90))
    brake = done.brake()

    def cancelled() -> None:
        raise StateConflict("cancelled")

    brake.still = cancelled
    with pytest.raises(StateConflict):
        brake.before_a_job()
    assert done.clock.seconds == 0


@dataclass
class Surroundings:
    """The parts of a world that tell how far a stream is behind: its lease, its record, its log."""

    spec: StreamSpec
    held: Lease | None = HELD
    gone: bool = False
    batches_now: list[LiveBatch] = field(default_factory=list)
    log: Behind | BackcastError = field(default_factory=lambda: Behind(70))
    clock: Watch = field(default_factory=Watch)
    asked: list[Mapping[int, int] | None] = field(default_factory=list)

    def lags(self, said: list[str]) -> LiveLags:
        return LiveLags(cast("World", self), said.append)

    def stream(self, name: str) -> StreamSpec:
        return self.spec

    def store(self) -> SimpleNamespace:
        runs = SimpleNamespace(holder=lambda name: self.held)
        return SimpleNamespace(runs=runs, streams=SimpleNamespace(batches=lambda name, limit: self.batches_now))

    def ended(self, holder: Holder) -> bool:
        return self.gone

    def behind(self, stream: StreamSpec, read: Mapping[int, int] | None) -> Behind:
        self.asked.append(read)
        if isinstance(self.log, BackcastError):
            raise self.log
        return self.log


@pytest.fixture
def around(tmp_path: Path) -> Surroundings:
    (tmp_path / "backcast.yaml").write_text(_GOOD + _STREAM)
    hangs = sample_batch(3).model_copy(update={"landed": False, "log_end": {}})
    landed = sample_batch(2).model_copy(update={"landed": True})
    return Surroundings(load_project(tmp_path, environ={}).stream("live"), batches_now=[hangs, landed])


def test_the_log_is_asked_how_far_a_stream_is_behind_for_a_batch_that_hangs_tells_nothing(around: Surroundings) -> None:
    assert around.lags([])("live") == Behind(70)
    landed = around.batches_now[1]
    assert around.asked == [{each.partition: each.end for each in landed.offsets}], "behind what the table has"


def test_brokers_that_do_not_answer_are_left_alone_for_a_while_and_the_record_counts(around: Surroundings) -> None:
    around.log, said = Unavailable("no broker of k:9092 answers"), []
    newest = around.batches_now[0]
    ends = {each.partition: each.end for each in newest.offsets}
    around.batches_now[0] = newest.model_copy(update={"log_end": {number: end + 8 for number, end in ends.items()}})
    lags = around.lags(said)
    for _ in range(3):
        found = lags("live")
        assert found is not None
        assert (found.records, found.note) == (8 * len(ends), "as of its batch 3: its brokers do not answer")
    assert len(around.asked) == 1
    assert said == ["cannot ask how far stream live is behind now: no broker of k:9092 answers"]
    around.clock.seconds, around.log = 61, Behind(1)
    assert lags("live") == Behind(1)


def test_nobody_waits_for_a_stream_that_nobody_runs_or_that_waits_itself(around: Surroundings) -> None:
    waiting = around.batches_now[0].model_copy(update={"waits": True})
    for changed in ({"held": None}, {"gone": True}, {"batches_now": []}, {"batches_now": [waiting]}):
        assert replace(around, **changed).lags([])("live") is None
    assert not around.asked


def test_a_stream_of_others_is_looked_at_by_its_checkpoint(around: Surroundings) -> None:
    around.spec, around.held = replace(around.spec, external=True), None
    assert around.lags([])("live") == Behind(70)
    assert around.asked == [None]
    around.log = InvalidRequest("s3://b/c: only checkpoints on a local disk can be read")
    assert around.lags([])("live") is None


def test_what_lies_behind_a_position_is_counted_from_where_the_log_begins() -> None:
    log = (PartitionState(0, 0, 10), PartitionState(1, 5, 9), PartitionState(2, 3, 7), PartitionState(3, 0, 4))
    assert unread(log, {0: 8, 1: 2, 3: 9}) == 2 + 4 + 4 + 0


def test_the_configuration_knows_the_streams_of_the_table_and_the_plan_tells_it(tmp_path: Path) -> None:
    throttled = "output: daily, throttle: {rows_per_second: 5000, per_partition: 900, pause: 2s, live_lag: 1000}}"
    (tmp_path / "backcast.yaml").write_text(_GOOD.replace("output: daily}", throttled) + _STREAM)
    project = load_project(tmp_path, environ={})
    found = project.pipeline("daily").settings.throttle
    assert found == Throttle(rows_per_second=5000, per_partition=900, pause_seconds=2, live_lag=1000, streams=("live",))
    assert project.pipeline("other").settings.throttle is None
    manifest = sample_manifest()
    told = manifest.model_copy(update={"settings": manifest.settings.model_copy(update={"throttle": found})})
    plan = Plan(manifest=told, sha256="0" * 64, run_id="daily-1", recorded=True, refused=False)
    said = (
        "at most 5,000 rows a second, at most 900 records a second of a partition, 2 s between jobs, waits while live"
    )
    assert f"{said} is more than 1,000 records behind" in " ".join(shown(render_plan(plan), 250).split())


def test_a_log_of_a_command_has_a_line_now_and_then_while_a_replay_waits(capsys: pytest.CaptureFixture[str]) -> None:
    """It has no chunks to count, so that each of its words would seem to be the last."""
    moments = iter((0.0, 1.0, 2.0, 10.5, 11.0))
    with ProgressView(Screen(no_color=True), "replaying", clock=lambda: next(moments)) as view:
        for left in (13, 12, 11, 3):
            view(Progress(step="replay", message=f"rests {left} s").as_json())
        view(Progress(step="stage", message="chunk 1", done=1, total=2).as_json())
    told = capsys.readouterr().err.split("\n")
    assert told == ["replay: rests 13 s", "replay: rests 3 s", "stage: 1/2 chunks, chunk 1", ""]


def test_a_lag_of_no_stream_is_told_as_that() -> None:
    assert Throttle(live_lag=5).told() == "live_lag waits for nobody: no stream here writes to the table"
    assert Throttle().told() == ""


def test_a_pace_of_nothing_is_refused(tmp_path: Path) -> None:
    bad = "output: daily, throttle: {rows_per_second: 0}}"
    (tmp_path / "backcast.yaml").write_text(_GOOD.replace("output: daily}", bad))
    with pytest.raises(ConfigError, match="rows_per_second"):
        load_project(tmp_path, environ={})
