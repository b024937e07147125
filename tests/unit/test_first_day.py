"""From which day on a table can be replaced by who reads from given offsets on: by the times of records alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backcast.errors import InvalidRequest, Refused, UnknownName
from backcast.model.log import PartitionState, TopicFacts
from backcast.model.stream import StreamSpec
from backcast.model.time import Grain
from backcast.project.config import load_project
from backcast.project.first_day import first_day, refuse_beyond
from tests.unit.test_config_streams import _GOOD, _STREAM

_MIDNIGHT = datetime(2026, 1, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)


@dataclass
class Log:
    """Times of records, by partition; in hours around a midnight."""

    hours: dict[int, list[float]]
    begins: int = 0
    looked: int = 0

    def record_times(self, offsets: Mapping[int, int]) -> dict[int, datetime | None]:
        return {number: self._at(number, max(offset, self.begins)) for number, offset in offsets.items()}

    def offsets_at(self, instant: datetime) -> dict[int, int | None]:
        self.looked += 1
        found = {
            number: [each for each in range(self.begins, len(hours)) if (self._at(number, each) or instant) >= instant]
            for number, hours in self.hours.items()
        }
        return {number: each[0] if each else None for number, each in found.items()}

    def _at(self, number: int, offset: int) -> datetime | None:
        hours = self.hours[number]
        return _MIDNIGHT + hours[offset] * HOUR if offset < len(hours) else None


@pytest.fixture
def spec(tmp_path: Path) -> StreamSpec:
    (tmp_path / "backcast.yaml").write_text(_GOOD + _STREAM)
    return load_project(tmp_path, environ={}).stream("live")


def test_it_is_the_first_that_no_earlier_record_belongs_to(spec: StreamSpec) -> None:
    log = Log({0: [-30, -20, 1, 2], 1: [-29, -28, -2, 3]})
    assert first_day(spec, log, {0: 2, 1: 2}, timedelta(), None) == "2026-01-02"
    assert first_day(spec, log, {0: 3, 1: 2}, timedelta(), None) == "2026-01-03", "a record of the second is left out"
    assert first_day(spec, log, {1: 3}, timedelta(), None) == "2026-01-02", "of a partition that is not named none is"
    assert first_day(spec, log, {1: 3}, 3 * HOUR, None) == "2026-01-03", "rows of its first hour may need that record"
    assert first_day(spec, log, {0: 0, 1: 0}, HOUR, None) is None, "there is nothing before them"
    hourly = replace(spec, pipeline=replace(spec.pipeline, output=replace(spec.dataset, grain=Grain.HOUR)))
    assert first_day(hourly, log, {1: 3}, timedelta(minutes=30), None) == "2026-01-01T23:00:00Z"


def test_a_boundary_belongs_to_the_day_behind_it(spec: StreamSpec) -> None:
    assert first_day(spec, Log({0: [0, 1]}), {0: 1}, timedelta(), None) == "2026-01-03"


@pytest.mark.parametrize("days", [1, 2, 3, 40, 1000])
def test_records_that_are_out_of_order_move_it_on(spec: StreamSpec, days: int) -> None:
    """An old record lies behind newer ones, all of them before the offset."""
    log = Log({0: [24.0 * each + 1 for each in range(days)] + [-30, 24.0 * days + 1]})
    wanted = f"{_MIDNIGHT + timedelta(days=days):%Y-%m-%d}"
    assert first_day(spec, log, {0: days + 1}, timedelta(), None) == wanted
    assert log.looked < 30


def test_what_retention_took_is_older_than_what_is_left(spec: StreamSpec) -> None:
    log = Log({0: [-30, -20, -1, 2]}, begins=2)
    assert first_day(spec, log, {0: 2}, timedelta(), None) == "2026-01-02"
    with pytest.raises(Refused, match="no record from which"):
        first_day(spec, Log({0: []}, begins=0), {0: 5}, timedelta(), None)


def test_a_day_that_somebody_gives_must_need_no_earlier_record(spec: StreamSpec) -> None:
    log = Log({0: [-30, -20, 1, 2]})
    for day in ("2026-01-02", "2026-01-09"):
        assert first_day(spec, log, {0: 2}, timedelta(), day) == day
    assert first_day(spec, log, {0: 0}, timedelta(), "2026-01-01") == "2026-01-01"
    with pytest.raises(Refused, match="may come of records before 0=2") as told:
        first_day(spec, log, {0: 2}, timedelta(), "2026-01-01")
    assert told.value.hint.startswith("--from 2026-01-02 or later keeps them")


def test_offsets_that_the_log_does_not_have_are_refused(spec: StreamSpec) -> None:
    facts = TopicFacts("orders", "id", (PartitionState(0, 5, 9),), frozenset(), None, None, "CreateTime")
    refuse_beyond(spec, facts, {0: 5})
    refuse_beyond(spec, facts, {0: 9})
    with pytest.raises(UnknownName, match="no partition 1"):
        refuse_beyond(spec, facts, {1: 5})
    with pytest.raises(InvalidRequest, match="ends at offset 9, before 10"):
        refuse_beyond(spec, facts, {0: 10})
    with pytest.raises(Refused, match=r"no longer has 0=4\.\.5"):
        refuse_beyond(spec, facts, {0: 4})
