"""From what is missing to the requests that ask for exactly that. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta

from backcast.model.log import OffsetRange
from backcast.model.request import Request
from backcast.model.time import Interval, joined, local, start_of_day


def window_requests(asked: Request, windows: Iterable[Interval], zone: str, *, lists: bool) -> tuple[Request, ...]:
    """One request where windows are one, or days of a list that the pipeline takes; else one for each window."""
    found = joined(windows)
    days = [whole_days(each, zone) for each in found]
    if len(found) > 1 and lists and all(each is not None for each in days):
        listed = [day for each in days if each is not None for day in _between(*each)]
        return (asked.model_copy(update={"dates": tuple(listed)}),)
    return tuple(_ranged(asked, each, zone) for each in found)


def offset_request(asked: Request, ranges: Sequence[OffsetRange]) -> Request:
    """Exactly these offsets of the topic."""
    spelled = ",".join(f"{each.partition}={each.start}..{each.end}" for each in ranges)
    return asked.model_copy(update={"offsets": spelled})


def whole_days(window: Interval, zone: str) -> tuple[date, date] | None:
    """First and last day of a window that starts and ends with a local day; else None."""
    first, after = local(window.start, zone).date(), local(window.end, zone).date()
    if start_of_day(first, zone) != window.start or start_of_day(after, zone) != window.end:
        return None
    return first, local(window.end - timedelta(microseconds=1), zone).date()


def _between(first: date, last: date) -> list[date]:
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


def _ranged(asked: Request, window: Interval, zone: str) -> Request:
    days = whole_days(window, zone)
    if days is not None:
        return asked.model_copy(update={"start": str(days[0]), "end": str(local(window.end, zone).date())})
    return asked.model_copy(update={"start": _exact(window.start), "end": _exact(window.end)})


def _exact(instant: datetime) -> str:
    """With its zone: a wall clock time may come twice a year."""
    there = instant.astimezone(UTC).replace(tzinfo=None)
    return f"{there.isoformat(timespec='auto' if there.second or there.microsecond else 'minutes')}Z"
