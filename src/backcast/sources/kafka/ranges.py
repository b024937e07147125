"""From windows of time to literal offsets of every partition. Pure: lookups come in, ranges go out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from backcast.model.log import OffsetRange, PartitionState, Ranges, TopicFacts
from backcast.model.time import Interval

_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)

Lookup = Mapping[int, int | None]
"""By partition: the first offset whose record time is not before a moment; None where no record is that late."""

Slack = tuple[timedelta, timedelta]
"""How much earlier, and how much later, than its event time a record may have been written."""


def ranges_for_times(facts: TopicFacts, starts: Lookup, ends: Lookup) -> Ranges:
    """The offsets between two looked-up moments, one range for every partition, cut to what the log has.

    Nothing is that late: the range starts (ends) at the log's end. A partition that was not looked up is taken whole.
    """
    return tuple(_range(each, starts, ends) for each in sorted(facts.partitions, key=lambda each: each.partition))


def event_ranges(
    facts: TopicFacts,
    lookups: tuple[Callable[[datetime], Lookup], Callable[[datetime], Lookup]],
    window: Interval,
    slack: Slack,
    *,
    to_end: bool = False,
) -> Ranges:
    """Offsets that hold every record of an event-time window, and others, which are filtered out after decoding.

    `lookups` find a start and an end: `offsets_at` and `ends_at` of a topic.
    True as long as no record is written earlier (later) than its event time by more than `slack`, and the record times
    of a partition are not out of order by more than that either; `to_end` takes the promise about later away.
    """
    (before, after), (start_at, end_at) = slack, lookups
    starts = start_at(moved(window.start, -before))
    ends: Lookup = dict.fromkeys(starts) if to_end else end_at(moved(window.end, after))
    return ranges_for_times(facts, starts, ends)


def whole(facts: TopicFacts) -> Ranges:
    """Everything that the log has now."""
    return ranges_for_times(facts, {}, {})


def _range(state: PartitionState, starts: Lookup, ends: Lookup) -> OffsetRange:
    number, first, last = state.partition, state.log_start, state.log_end
    start = _or(starts[number], last) if number in starts else first
    end = _or(ends[number], last) if number in ends else last
    # Records may arrive, or leave, between two lookups: then the later moment can be found before the earlier one.
    low, high = sorted((start, end))
    return OffsetRange(partition=number, start=_within(low, first, last), end=_within(high, first, last))


def _or(found: int | None, otherwise: int) -> int:
    return otherwise if found is None else found


def _within(offset: int, first: int, last: int) -> int:
    return min(max(offset, first), last)


def moved(instant: datetime, by: timedelta) -> datetime:
    """No further than the calendar goes."""
    try:
        return instant + by
    except OverflowError:
        return _FIRST if by < timedelta() else _LAST
