"""What is missing in a dataset, and what is there twice. Pure: from the number of rows in each piece of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from statistics import median

from backcast.errors import InvalidRequest
from backcast.model import time as t
from backcast.model.calendar import EVERY_DAY, Calendar
from backcast.model.document import Document
from backcast.model.time import Grain, Interval

MOST_PIECES = 200_000
_SHORTEST = {
    Grain.HOUR: timedelta(hours=1),
    Grain.DAY: timedelta(hours=23),
    Grain.WEEK: timedelta(days=6),
    Grain.MONTH: timedelta(days=27),
    Grain.YEAR: timedelta(days=364),
}
_THIN = 0.1
_SHOWN = 50


class Gap(Document):
    """Neighbouring pieces of time without a row."""

    window: Interval
    pieces: int


class Thin(Document):
    """A piece with far fewer rows than the others have."""

    window: Interval
    rows: int


class Keys(Document):
    """Whether the key names one row each."""

    columns: tuple[str, ...]
    nulls: int
    """Rows with a null in it."""
    doubles: int
    """Keys that more than one row has."""
    example: str
    where: tuple[Interval, ...] = ()
    """Pieces of time with rows that share their key with another; neighbours together."""


class Health(Document):
    """A dataset as it is now, in one window."""

    dataset: str
    table: str
    version: str | None
    grain: Grain
    zone: str
    window: Interval | None
    """None for a dataset without rows, when no window was asked for."""
    rows: int
    without_time: int
    pieces: int
    usual: int
    """Rows of the piece in the middle, of those that have any."""
    gaps: tuple[Gap, ...]
    thin: tuple[Thin, ...]
    """The first of them."""
    keys: Keys | None
    pipelines: tuple[str, ...]
    """Which of the project's pipelines fill it."""
    restated_by: tuple[str, ...] = ()
    """Those of them that replace what is there."""

    @property
    def sound(self) -> bool:
        keys = self.keys
        return not self.gaps and not self.without_time and (keys is None or not (keys.nulls or keys.doubles))


def pieces_of(counts: Mapping[datetime, int], window: Interval | None, grain: Grain, zone: str) -> list[Interval]:
    """The window cut along the grain; without one, from the first row to the last. `counts` are by wall clock time."""
    if window is None and not counts:
        return []
    try:
        return _cut(window or _whole(counts, grain, zone), grain, zone)
    except (OverflowError, ValueError) as error:
        raise t.beyond_calendar() from error


def _whole(counts: Mapping[datetime, int], grain: Grain, zone: str) -> Interval:
    last = t.next_wall(max(counts), grain)
    return Interval(start=t.first_instant(min(counts), zone), end=t.first_instant(last, zone))


def _cut(window: Interval, grain: Grain, zone: str) -> list[Interval]:
    if (window.end - window.start) / _SHORTEST[grain] > MOST_PIECES:
        raise InvalidRequest(
            f"{window.start:%Y-%m-%d} to {window.end:%Y-%m-%d} are too many pieces to look for gaps in",
            hint="rows with sentinel times stretch a dataset: give a window with --from and --to",
        )
    return t.cut(window, grain, zone)


def gaps_of(
    pieces: list[Interval],
    counts: Mapping[datetime, int],
    grain: Grain,
    zone: str,
    calendar: Calendar = EVERY_DAY,
) -> tuple[Gap, ...]:
    """Expected pieces without a row; neighbours together."""
    empty = (each for each in pieces if not rows_of(each, counts, grain, zone))
    return together(each for each in empty if calendar.expects(each, zone))


def pieces_with_rows(
    pieces: list[Interval], counts: Mapping[datetime, int], grain: Grain, zone: str
) -> tuple[Interval, ...]:
    """Neighbours together."""
    return tuple(each.window for each in together(each for each in pieces if rows_of(each, counts, grain, zone)))


def missing_hours(
    pieces: list[Interval], hours: Mapping[datetime, int], zone: str, calendar: Calendar = EVERY_DAY
) -> tuple[Gap, ...]:
    """Hours without a row, of pieces that have rows, that at least half of the days with rows have."""
    days = {each.date() for each in hours}
    clock = Counter(each.hour for each in hours)
    usual = {hour for hour, times in clock.items() if 2 * times >= len(days)}
    found = []
    for piece in pieces:
        for hour in t.cut(piece, Grain.HOUR, zone):
            wall = t.local(hour.start, zone)
            known = wall.date() in days and wall.hour in usual
            if known and not rows_of(hour, hours, Grain.HOUR, zone) and calendar.expects(hour, zone):
                found.append(hour)
    return together(found)


def together(pieces: Iterable[Interval]) -> tuple[Gap, ...]:
    """Neighbours as one; pieces come in order."""
    found: list[Gap] = []
    for piece in pieces:
        if found and found[-1].window.end == piece.start:
            before = found.pop()
            window = Interval(start=before.window.start, end=piece.end)
            found.append(Gap(window=window, pieces=before.pieces + 1))
        else:
            found.append(Gap(window=piece, pieces=1))
    return tuple(found)


def thin_of(
    pieces: list[Interval], counts: Mapping[datetime, int], grain: Grain, zone: str
) -> tuple[int, tuple[Thin, ...]]:
    """How many rows a piece usually has, and pieces that have less than a tenth of that."""
    usual = round(median(counts.values())) if counts else 0
    rows = ((piece, rows_of(piece, counts, grain, zone)) for piece in pieces)
    thin = [Thin(window=piece, rows=number) for piece, number in rows if 0 < number < usual * _THIN]
    return usual, tuple(thin[:_SHOWN])


def rows_of(piece: Interval, counts: Mapping[datetime, int], grain: Grain, zone: str) -> int:
    return counts.get(t.floor_wall(t.local(piece.start, zone), grain), 0)
