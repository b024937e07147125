"""A full replay without Spark: what is refused before anything is read, which days it replaces, how far it is."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from backcast.control import ControlPlane
from backcast.errors import InvalidRequest, Refused, StateConflict
from backcast.model import full_replay as steps
from backcast.model.full_replay import (
    FullReplay,
    refuse_giving_up,
    refuse_mixed,
    refuse_open,
    refuse_unfit,
    scope_of,
    unfinished,
)
from backcast.model.live import LiveBatch, LiveStep, stream_lease
from backcast.model.log import OffsetRange
from backcast.model.manifest import LivePolicy
from backcast.model.states import RunState
from backcast.model.stream import StreamSpec, StreamWrite
from backcast.model.table import PublishMode
from backcast.model.under_way import refuse_between
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.run.lease import acquire
from backcast.testing.faults import SimulatedCrash, crash_at
from backcast.testing.samples import FIRST_DAY
from tests.unit.test_config_streams import _GOOD, _STREAM

BEGUN = FullReplay(stream="live", pipeline="daily", start="2026-01-02", query_id="q", resume=False)


@pytest.fixture
def spec(tmp_path: Path) -> StreamSpec:
    (tmp_path / "backcast.yaml").write_text(_GOOD + _STREAM)
    return load_project(tmp_path, environ={}).stream("live")


def told(*names: str, **data: object) -> list[LiveStep]:
    first = LiveStep(stream="live", number=0, at=FIRST_DAY, name=steps.BEGUN, data=BEGUN.as_json())
    return [first, *(LiveStep(stream="live", number=1, at=FIRST_DAY, name=name, data=dict(data)) for name in names)]


def test_what_would_be_refused_in_the_end_is_refused_at_once(spec: StreamSpec) -> None:
    refuse_unfit(spec, [])

    def publishing(**changed: object) -> StreamSpec:
        settings = spec.pipeline.settings.model_copy(update=changed)
        return replace(spec, pipeline=replace(spec.pipeline, settings=settings))

    unfit = {
        "by merge": replace(spec, write=StreamWrite.MERGE),
        "by append": publishing(publish_mode=PublishMode.APPEND),
        "restage": publishing(live_policy=LivePolicy.RESTAGE),
        "somebody else": replace(spec, external=True),
        "no event time": replace(spec, source=replace(spec.source, time=None)),
    }
    for why, each in unfit.items():
        with pytest.raises(InvalidRequest, match=why):
            refuse_unfit(each, [])
    with pytest.raises(Refused, match=r"stream other writes to .* too"):
        refuse_unfit(spec, ["other"])


def test_all_days_with_rows_are_replaced_unless_the_topic_lacks_some_of_them() -> None:
    one, two, nine = date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 9)
    assert scope_of("live", (two, two), (one, nine), None) == ("2025-12-31", "2026-01-11")
    assert scope_of("live", None, (one, two), None) == ("2025-12-31", "2026-01-04")
    assert scope_of("live", (one, nine), (two, two), "2026-01-02") == ("2026-01-02", "2026-01-11")
    assert scope_of("live", (one, one), (one, two), None) == ("2025-12-31", "2026-01-04")
    for replayed in ((two, nine), None):
        with pytest.raises(Refused, match="would be replaced by nothing"):
            scope_of("live", (one, nine), replayed, None)
    with pytest.raises(Refused, match="has a row"):
        scope_of("live", None, None, "2026-01-01")


def test_windows_from_before_the_day_must_be_closed() -> None:
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    for watermark, since in ((None, noon), (noon, None), (noon, noon)):
        refuse_open("live", watermark, since)
    with pytest.raises(Refused, match="still open"):
        refuse_open("live", noon, datetime(2026, 1, 2, 13, tzinfo=UTC))


def test_one_can_be_given_up_until_readers_see_its_rows() -> None:
    planned = BEGUN.model_copy(update={"run_id": "r"})
    for state in (None, RunState.PLANNED, RunState.REJECTED, RunState.CANCELLED, RunState.UNDONE):
        refuse_giving_up(planned, state)
    for state in (RunState.PUBLISHING, RunState.PUBLISHED, RunState.SUPERSEDED, RunState.UNDOING):
        with pytest.raises(StateConflict, match="a second time") as error:
            refuse_giving_up(planned, state)
        assert "backcast stream replay live --from 2026-01-02 goes on" in error.value.hint
    with pytest.raises(StateConflict, match="nothing left"):
        refuse_giving_up(planned.model_copy(update={"steps": (steps.SWAPPED,)}), RunState.UNDONE)


def test_a_stream_cannot_be_started_between_its_stop_and_the_exchange() -> None:
    refuse_between("live", told())
    with pytest.raises(Refused, match="a full replay has stopped stream live"):
        refuse_between("live", told(steps.STOPPED))
    refuse_between("live", told(steps.STOPPED, steps.SWAPPED))
    refuse_between("live", told(steps.STOPPED, steps.GIVEN_UP))


def test_a_stream_that_was_started_meanwhile_is_started_again_at_the_end() -> None:
    found = unfinished(told(steps.STOPPED, resume=True))
    assert found is not None
    assert found.resume


def test_one_that_is_given_up_starts_its_stream_with_the_code_that_it_ran_with_only() -> None:
    """Windows that its state has half filled would close with both."""
    giving_up, ran = told(steps.STOPPED, steps.GIVING_UP), ("1.0.0", "a" * 64)
    refuse_between("live", giving_up)
    refuse_mixed(giving_up, "daily", ran, "a" * 64)
    with pytest.raises(Refused, match="would close with both") as error:
        refuse_mixed(giving_up, "daily", ran, "b" * 64)
    assert "deploy version 1.0.0, code aaaaaaaaaaaa again" in error.value.hint
    assert "backcast stream replay live --from 2026-01-02 --give-up" in error.value.hint
    for others in (told(steps.STOPPED), told(steps.STOPPED, steps.GIVING_UP, steps.GIVEN_UP), []):
        refuse_mixed(others, "daily", ran, "b" * 64)


def test_a_death_while_one_is_given_up_leaves_a_stream_that_can_be_started(tmp_path: Path) -> None:
    (tmp_path / "backcast.yaml").write_text(_GOOD + _STREAM)
    control = ControlPlane(Wiring(load_project(tmp_path, environ={})))
    with closing(control.world):
        store = control.world.store().streams
        store.step("live", steps.BEGUN, **BEGUN.model_copy(update={"resume": True}).as_json())
        assert control.stream_replay_giving_up("live").steps == (), "nothing has been stopped"
        store.step("live", steps.STOPPED)
        with pytest.raises(Refused, match="a full replay has stopped stream live"):
            control.refuse_start("live")
        with crash_at("full-replay.after-giving-up"), pytest.raises(SimulatedCrash):
            control.stream_replay_giving_up("live")
        control.refuse_start("live")
        there, _ = control.stream_replay_given_up("live", "2026-01-02")
        assert control.stream_replay_giving_up("live") == there, "the same command goes on"
        assert there.resume, "and starts it"
        control.stream_replay_end("live", given_up=True)
        assert unfinished(store.steps("live")) is None


def test_another_replay_takes_the_place_of_one_that_could_not_be_given_up(tmp_path: Path) -> None:
    """Its stream was not started, because the code is that of the correction; it is started at the end of this one."""
    (tmp_path / "backcast.yaml").write_text(_GOOD + _STREAM)
    control = ControlPlane(Wiring(load_project(tmp_path, environ={})))
    with closing(control.world):
        world, store = control.world, control.world.store()
        with acquire(store.leases, stream_lease("live"), world.holder(), world.clock, world.ended) as lease:
            offsets = (OffsetRange(partition=0, start=0, end=7),)
            batch = LiveBatch(
                stream="live", query_id="q", batch=0, offsets=offsets, base=None, at=FIRST_DAY, landed=True
            )
            store.streams.record(batch.model_copy(update={"landed": True}), lease.check())
        store.streams.step("live", steps.BEGUN, **BEGUN.model_copy(update={"resume": True}).as_json())
        store.streams.step("live", steps.STOPPED)
        control.stream_replay_giving_up("live")
        again = control.stream_replay("live")
        assert (again.start, again.resume, again.steps) == (None, True, ())
        assert again.query_id != BEGUN.query_id
