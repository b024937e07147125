"""On which days rows are expected, as a dataset declares it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from backcast.model.time import local

if TYPE_CHECKING:
    from backcast.model.time import Interval

_SATURDAY = 5


class Week(StrEnum):
    """Which days of a week bring rows."""

    DAILY = "daily"
    WEEKDAYS = "weekdays"
    """Monday to Friday."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """A piece of time is expected to have rows when one of its days is open."""

    week: Week = Week.DAILY
    closed: frozenset[date] = frozenset()

    def expects(self, piece: Interval, zone: str) -> bool:
        first = local(piece.start, zone).date()
        last = local(piece.end - timedelta(microseconds=1), zone).date()
        return any(self._is_open(first + timedelta(days=number)) for number in range((last - first).days + 1))

    def _is_open(self, day: date) -> bool:
        return day not in self.closed and (self.week is Week.DAILY or day.weekday() < _SATURDAY)


EVERY_DAY = Calendar()
