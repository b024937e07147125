"""From what was typed to windows: dates, lists, exclusions, and partitions that the window would cut."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from backcast.errors import InvalidRequest
from backcast.model import time as t
from backcast.model.column import TimeColumn, aligned
from backcast.model.request import Request
from backcast.model.table import PartitionField
from backcast.model.time import Grain, Interval

_UNITS = {"hour": Grain.HOUR, "day": Grain.DAY, "month": Grain.MONTH, "year": Grain.YEAR}


def requested_windows(request: Request, zone: str) -> tuple[Interval, ...]:
    """The windows as asked for, in order, with exclusions taken out. Raises InvalidRequest when nothing is left."""
    if request.dates and (request.start or request.end):
        raise InvalidRequest("give either dates or a range, not both", hint="use --on DAY, or --from and --to")
    if request.dates:
        windows = [_day(day, zone) for day in sorted(set(request.dates))]
    elif request.start and request.end:
        windows = [_range(request.start, request.end, zone)]
    else:
        raise InvalidRequest(
            "no window given", hint="use --from 2025-01-01 --to 2025-02-01 (exclusive), or --on 2025-01-31"
        )
    for day in sorted(set(request.exclude)):
        excluded = _day(day, zone)
        if not any(window.overlaps(excluded) for window in windows):
            raise InvalidRequest(f"excluded day {day} is not in the window", hint="drop it from --exclude")
        windows = [piece for window in windows for piece in window.minus(excluded)]
    if not windows:
        raise InvalidRequest("the exclusions leave nothing to do", hint="exclude fewer days")
    return tuple(windows)


def _day(day: date, zone: str) -> Interval:
    try:
        start, end = t.start_of_day(day, zone), t.start_of_day(day + timedelta(days=1), zone)
    except OverflowError as error:
        raise t.beyond_calendar() from error
    if start == end:
        raise InvalidRequest(f"{day} does not exist in {zone}", hint="leave it out: the clocks skipped that day")
    return Interval(start=start, end=end)


def _range(start: str, end: str, zone: str) -> Interval:
    first, last = t.parse_instant(start, zone), t.parse_instant(end, zone)
    if first >= last:
        raise InvalidRequest(
            f"the window is empty: --from {start} is not before --to {end}",
            hint="--to is exclusive: for a single day write --on " + start[:10],
        )
    return Interval(start=first, end=last)


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How the table cuts time: by which field, in which unit.

    `unit` None means: not by time at all, or by each value.
    """

    column: TimeColumn
    field: PartitionField | None
    unit: Grain | None

    @property
    def by_time(self) -> bool:
        return self.field is not None

    @property
    def zone(self) -> str:
        """Iceberg cuts instants in UTC; dates and wall clock times are local to the dataset's zone."""
        return self.column.zone if self.column.is_wall else "UTC"

    def aligned(self, window: Interval) -> bool:
        if not self.by_time:
            return False
        return self.unit is None or all(aligned(each, self.unit, self.column) for each in (window.start, window.end))

    def widened(self, window: Interval) -> Interval:
        """The smallest whole number of partitions around the window."""
        if self.unit is None:
            return window
        return Interval(
            start=t.floor_instant(window.start, self.unit, self.zone),
            end=t.ceil_instant(window.end, self.unit, self.zone),
        )

    def grain(self, wanted: Grain) -> Grain:
        """The wanted grain, or the partition's unit where the wanted one would cut partitions."""
        if self.unit is None:
            return wanted
        order = list(Grain)
        weeks_cut = wanted is Grain.WEEK and self.unit in (Grain.MONTH, Grain.YEAR)
        return self.unit if order.index(wanted) < order.index(self.unit) or weeks_cut else wanted


def partitioning(column: TimeColumn, fields: tuple[PartitionField, ...]) -> Partitioning:
    """The first partition field that follows from the column in a way that cuts time."""
    for field in fields:
        if field.source != column.column:
            continue
        if field.transform == "identity":
            return Partitioning(column, field, column.unit)
        if field.transform in _UNITS:
            return Partitioning(column, field, _UNITS[field.transform])
    return Partitioning(column, None, None)
