"""A full replay without Spark: what is refused before anything is read, which days it replaces, how far it is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from backcast.errors import InvalidRequest, Refused, StateConflict
from backcast.model import full_replay as steps
from backcast.model.full_replay import (
    FullReplay,
    refuse_between,
    refuse_giving_up,
    refuse_open,
    refuse_unfit,
    scope_of,
    unfinished,
)
from backcast.model.live import LiveStep
from backcast.model.manifest import LivePolicy
from backcast.model.states import RunState
from backcast.model.stream import StreamSpec, StreamWrite
from backcast.model.table import PublishMode
from backcast.project.config import load_project
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
    refuse_between(told())
    with pytest.raises(Refused, match="has stopped it"):
        refuse_between(told(steps.STOPPED))
    refuse_between(told(steps.STOPPED, steps.SWAPPED))
    refuse_between(told(steps.STOPPED, steps.GIVEN_UP))


def test_a_stream_that_was_started_meanwhile_is_started_again_at_the_end() -> None:
    found = unfinished(told(steps.STOPPED, resume=True))
    assert found is not None
    assert found.resume
