"""Half-open UTC intervals, and how they are cut into local hours, days, weeks, months and years.

Zones matter only here: a local day starts at its first instant (not always 00:00), a skipped date has no length and
is no chunk, a day with 25 hours is one chunk of 25 hours, weeks start on Monday.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import model_validator

from backcast.errors import InvalidRequest
from backcast.model.document import Document


class Grain(StrEnum):
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"


class Interval(Document):
    """[start, end) in UTC. Never empty."""

    start: datetime
    end: datetime

    @model_validator(mode="after")
    def _is_forward(self) -> Interval:
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise ValueError("an interval needs instants, not local times")
        if self.start >= self.end:
            raise ValueError(f"an interval must end after it starts: {self.start} .. {self.end}")
        return self

    def overlaps(self, other: Interval) -> bool:
        return self.start < other.end and other.start < self.end

    def contains(self, other: Interval) -> bool:
        return self.start <= other.start and other.end <= self.end

    def widened(self, before: timedelta, after: timedelta) -> Interval:
        return Interval(start=self.start - before, end=self.end + after)

    def minus(self, other: Interval) -> list[Interval]:
        """What is left of this interval once the other is taken out: none, one or two pieces."""
        if not self.overlaps(other):
            return [self]
        pieces = [(self.start, min(self.end, other.start)), (max(self.start, other.end), self.end)]
        return [Interval(start=start, end=end) for start, end in pieces if start < end]


def joined(windows: Iterable[Interval]) -> tuple[Interval, ...]:
    """The same instants in as few intervals as possible, in order."""
    found: list[Interval] = []
    for window in sorted(windows, key=lambda each: each.start):
        if found and window.start <= found[-1].end:
            found[-1] = Interval(start=found[-1].start, end=max(found[-1].end, window.end))
        else:
            found.append(window)
    return tuple(found)


@lru_cache
def zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidRequest(
            f"no time zone is called {name!r}", hint="use an IANA name such as Europe/Berlin"
        ) from error


def local(instant: datetime, zone_name: str) -> datetime:
    """The wall clock at that instant, without zone."""
    return instant.astimezone(zone(zone_name)).replace(tzinfo=None)


def first_instant(wall: datetime, zone_name: str) -> datetime:
    """The first instant at which the wall clock shows `wall` or, when it never does, something later."""
    there = zone(zone_name)
    early = wall.replace(tzinfo=there, fold=0).astimezone(UTC)
    if local(early, zone_name) == wall:
        return early
    low, high = sorted((wall.replace(tzinfo=there, fold=1).astimezone(UTC), early))
    while high - low > timedelta(seconds=1):
        middle = low + timedelta(seconds=int((high - low).total_seconds()) // 2)
        low, high = (low, middle) if local(middle, zone_name) >= wall else (middle, high)
    return high


def start_of_day(day: date, zone_name: str) -> datetime:
    return first_instant(datetime.combine(day, time()), zone_name)


def floor_wall(wall: datetime, grain: Grain) -> datetime:
    """The start of the hour, day, week, month or year that the wall clock time lies in."""
    if grain is Grain.HOUR:
        return wall.replace(minute=0, second=0, microsecond=0)
    midnight = datetime.combine(wall.date(), time())
    match grain:
        case Grain.DAY:
            return midnight
        case Grain.WEEK:
            return midnight - timedelta(days=midnight.weekday())
        case Grain.MONTH:
            return midnight.replace(day=1)
        case Grain.YEAR:
            return midnight.replace(month=1, day=1)


def next_wall(wall: datetime, grain: Grain) -> datetime:
    """The start of the following hour, day, week, month or year. `wall` must itself be such a start."""
    match grain:
        case Grain.HOUR:
            return wall + timedelta(hours=1)
        case Grain.DAY:
            return wall + timedelta(days=1)
        case Grain.WEEK:
            return wall + timedelta(days=7)
        case Grain.MONTH:
            return (wall + timedelta(days=32)).replace(day=1)
        case Grain.YEAR:
            return wall.replace(year=wall.year + 1)


def ceil_wall(wall: datetime, grain: Grain) -> datetime:
    floor = floor_wall(wall, grain)
    return floor if floor == wall else next_wall(floor, grain)


def floor_instant(instant: datetime, grain: Grain, zone_name: str) -> datetime:
    """The last boundary of the grain that is not after the instant."""
    if grain is Grain.HOUR:
        wall = local(instant, zone_name)
        return instant - timedelta(minutes=wall.minute, seconds=wall.second, microseconds=wall.microsecond)
    wall = floor_wall(local(instant, zone_name), grain)
    return min(first_instant(wall, zone_name), instant)


def ceil_instant(instant: datetime, grain: Grain, zone_name: str) -> datetime:
    """The first boundary of the grain that is not before the instant."""
    floor = floor_instant(instant, grain, zone_name)
    return instant if floor == instant else next_boundary(floor, grain, zone_name)


def next_boundary(instant: datetime, grain: Grain, zone_name: str) -> datetime:
    """The first boundary of the grain after the instant. Hours are elapsed hours, so a repeated hour counts twice."""
    if grain is Grain.HOUR:
        wall = local(instant, zone_name)
        return instant + timedelta(minutes=60 - wall.minute, seconds=-wall.second, microseconds=-wall.microsecond)
    wall = floor_wall(local(instant, zone_name), grain)
    while True:
        wall = next_wall(wall, grain)
        boundary = first_instant(wall, zone_name)
        if boundary > instant:
            return boundary


def cut(window: Interval, grain: Grain, zone_name: str) -> list[Interval]:
    """The window in pieces along the grain's boundaries: in order, without gap or overlap, none empty."""
    boundaries = [window.start]
    following = next_boundary(window.start, grain, zone_name)
    while following < window.end:
        boundaries.append(following)
        following = next_boundary(following, grain, zone_name)
    boundaries.append(window.end)
    return [Interval(start=start, end=end) for start, end in pairwise(boundaries)]


def parse_instant(text: str, zone_name: str) -> datetime:
    """`2025-01-31`, `2025-01-31T05:00` (local to the zone) or `2025-01-31T05:00Z` as an instant."""
    try:
        if len(text) == 10:
            return start_of_day(date.fromisoformat(text), zone_name)
        parsed = datetime.fromisoformat(text)
        return parsed.astimezone(UTC) if parsed.tzinfo else first_instant(parsed, zone_name)
    except ValueError as error:
        raise InvalidRequest(
            f"{text!r} is not a date or time", hint="write 2025-01-31, 2025-01-31T05:00 or 2025-01-31T05:00Z"
        ) from error
    except OverflowError as error:
        raise beyond_calendar() from error


def parse_interval(text: str, zone_name: str) -> Interval:
    """`2026-01-31..2026-02-01`: two dates or times; the second is where it ends and no part of it."""
    first, dots, last = text.partition("..")
    if not dots or not first or not last:
        hint = "write FROM..TO, for example 2026-01-31..2026-02-01 for one day"
        raise InvalidRequest(f"{text!r} is not a window of time", hint=hint)
    start, end = parse_instant(first.strip(), zone_name), parse_instant(last.strip(), zone_name)
    if start >= end:
        hint = "it must end after it starts, and its end is no part of it"
        raise InvalidRequest(f"the window {text!r} holds no time", hint=hint)
    return Interval(start=start, end=end)


def beyond_calendar() -> InvalidRequest:
    """For what cannot be computed with: a day is known by its end too, and zones move it by hours."""
    return InvalidRequest(
        "the window, its zone and its warm-up reach beyond the years 1 to 9999", hint="give a narrower window"
    )


_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_duration(text: str) -> timedelta:
    """`90s`, `30m`, `12h`, `7d`, `2w`."""
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not number.isdigit():
        raise ValueError(f"{text!r} is not a duration; write for example 90s, 30m, 12h, 7d or 2w")
    return timedelta(**{_UNITS[unit]: int(number)})
