"""Which days of a stream's table come of records from given offsets on alone. Asks the topic for times of records."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from backcast.errors import InvalidRequest, Refused, UnknownName
from backcast.model.time import Grain, ceil_instant, local, parse_instant
from backcast.sources.kafka.ranges import moved

if TYPE_CHECKING:
    from backcast.model.log import TopicFacts
    from backcast.model.stream import StreamSpec

_LEAST = timedelta(milliseconds=1)
"""Kafka's clock: behind a record comes one that is later by that much."""


class Times(Protocol):
    """What is asked of a topic."""

    def record_times(self, offsets: Mapping[int, int]) -> dict[int, datetime | None]:
        """Of the first record at or after each of these."""

    def offsets_at(self, instant: datetime) -> dict[int, int | None]:
        """The first of each partition that is not earlier; None: all are."""


def refuse_beyond(spec: StreamSpec, facts: TopicFacts, offsets: Mapping[int, int]) -> None:
    """Raises UnknownName, InvalidRequest or Refused for offsets that the log does not have."""
    topic = spec.source.topic
    for number, offset in sorted(offsets.items()):
        state = facts.partition(number)
        if state is None:
            hint = f"it has {len(facts.partitions)}, from 0"
            raise UnknownName(f"topic {topic} has no partition {number}", hint=hint, kind="partition", name=str(number))
        if offset > state.log_end:
            raise InvalidRequest(f"partition {number} of {topic} ends at offset {state.log_end}, before {offset}")
        if offset < state.log_start:
            raise Refused(
                f"the log of topic {topic} no longer has {number}={offset}..{state.log_start}",
                hint=f"begin at {number}={state.log_start} or later: backcast stream lag {spec.name}",
            )


def first_day(
    spec: StreamSpec, topic: Times, offsets: Mapping[int, int], before: timedelta, start: str | None
) -> str | None:
    """The first of the table's days (hours, months) of which no record lies before the offsets; None: all of them.

    A row is made of records that were written at most so much `before` its time. Raises Refused for a `start` that
    needs earlier records.
    """
    # Nothing lies before the first offset that ever was.
    inside = {number: offset for number, offset in offsets.items() if offset}
    zone, grain = spec.dataset.time.zone, spec.dataset.grain
    earliest = _first(topic, inside, before, grain, zone) if inside else None
    found = None if earliest is None else _written(earliest, grain, zone)
    if start is None or found is None or earliest is None:
        return start or found
    if parse_instant(start, zone) < earliest:
        told = ",".join(f"{number}={offset}" for number, offset in sorted(offsets.items()))
        raise Refused(
            f"rows of {start} and later may come of records before {told}: they would be replaced by nothing",
            hint=f"--from {found} or later keeps them; or begin at earlier offsets: backcast kafka offsets"
            f" {spec.source.name} --at {start}",
        )
    return start


def _first(topic: Times, offsets: Mapping[int, int], before: timedelta, grain: Grain, zone: str) -> datetime | None:
    """The first boundary from which on no row needs a record before the offsets.

    Records are mostly in order of their times, so it is mostly the one behind the last of them; where an earlier one
    carries a later time, boundaries are searched by halves.
    """
    last = topic.record_times({number: offset - 1 for number, offset in offsets.items()}).values()
    latest = max((each for each in last if each is not None), default=None)
    if latest is None:
        raise Refused("the log has no record from which the day of these offsets could be told", hint="use --from DAY")

    def needed(boundary: datetime) -> bool:
        found = topic.offsets_at(moved(boundary, -before))
        return any(at is not None and at < offsets.get(number, 0) for number, at in found.items())

    high = ceil_instant(latest + _LEAST + before, grain, zone)
    low, step = high, timedelta(days=1)
    while needed(high):
        low, high, step = high, ceil_instant(high + step, grain, zone), step * 2
    while low < high:
        middle = ceil_instant(low + (high - low) / 2, grain, zone)
        if middle >= high:
            # No boundary lies between: the first of them was tried.
            return high
        low, high = (middle, high) if needed(middle) else (low, middle)
    return high


def _written(instant: datetime, grain: Grain, zone: str) -> str:
    """As people and plans write it."""
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}" if grain is Grain.HOUR else f"{local(instant, zone):%Y-%m-%d}"
