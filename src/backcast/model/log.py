"""A topic's log, as a plan pins it: literal offsets of every partition, and why they can be trusted to be there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pydantic import Field, model_validator

from backcast.model.document import Document
from backcast.model.time import Interval


class Isolation(StrEnum):
    """Which records a reader sees. Under `read_committed` the log ends where the oldest open transaction starts."""

    COMMITTED = "read_committed"
    UNCOMMITTED = "read_uncommitted"


class OffsetRange(Document):
    """Offsets `[start, end)` of one partition; empty when both are equal."""

    partition: int
    start: int
    end: int

    @model_validator(mode="after")
    def _in_order(self) -> OffsetRange:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"offsets {self.start}..{self.end} of partition {self.partition} are not in order")
        return self

    @property
    def span(self) -> int:
        return self.end - self.start


Ranges = tuple[OffsetRange, ...]
"""At most one for each partition, in order of partitions."""


def hull(each: Iterable[Ranges]) -> Ranges:
    """The smallest range of each partition that holds all of them; empty ranges do not count."""
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    for found in (item for ranges in each for item in ranges if item.span):
        starts[found.partition] = min(found.start, starts.get(found.partition, found.start))
        ends[found.partition] = max(found.end, ends.get(found.partition, found.end))
    return tuple(OffsetRange(partition=name, start=starts[name], end=ends[name]) for name in sorted(starts))


def span(ranges: Ranges) -> int:
    return sum(each.span for each in ranges)


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition as the broker has it now."""

    partition: int
    log_start: int
    log_end: int
    """Exclusive. The last stable offset under `read_committed`, else the high watermark."""


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic as the broker has it now."""

    topic: str
    topic_id: str
    """A topic that was deleted and made again has another."""
    partitions: tuple[PartitionState, ...]
    cleanup: frozenset[str]
    """`delete`, `compact` or both; empty when this user may not see the topic's settings."""
    retention_ms: int | None
    """None: without limit."""
    retention_bytes: int | None
    timestamp_type: str
    """`CreateTime` (producers say what time it is) or `LogAppendTime`."""

    def partition(self, number: int) -> PartitionState | None:
        return next((each for each in self.partitions if each.partition == number), None)


class PinnedPartition(Document):
    """The part of one partition that a run reads, and what the log held when it was planned."""

    partition: int
    start: int
    end: int
    log_start: int
    log_end: int
    survives_until: datetime | None = None
    """When retention may remove its first record at the earliest; None when nothing says that it will."""

    @property
    def range(self) -> OffsetRange:
        return OffsetRange(partition=self.partition, start=self.start, end=self.end)


class LogSlice(Document):
    """What one chunk reads. Chunks of time may read the same offsets, for a record belongs to one by its event time;
    each offset is owned by exactly one, so that what all of them count adds up.
    """

    ranges: Ranges
    owned: Ranges
    window: Interval | None = None
    """Event time that this chunk alone counts as its own; None: all. It may read more, as warm-up."""


class LogPin(Document):
    """Everything about the log that decides what a run reads."""

    topic: str
    topic_id: str
    isolation: Isolation
    cleanup: tuple[str, ...]
    retention_ms: int | None
    retention_bytes: int | None
    timestamp_type: str
    partitions: tuple[PinnedPartition, ...]
    missing: Ranges = ()
    """Offsets that the window needs and that the log no longer has."""
    to_end: bool = False
    """No record of the window can have been written after the last that is read."""
    slices: dict[str, LogSlice] = Field(default_factory=dict)
    """What each chunk reads, by its id."""

    @property
    def ranges(self) -> Ranges:
        return tuple(each.range for each in self.partitions)


def owned_slices(slices: Mapping[str, tuple[Interval, Ranges]]) -> dict[str, LogSlice]:
    """Chunks with the time and the offsets that each reads; each instant and each offset is owned by the last chunk
    that begins before it.

    Starts must not run backwards from one chunk to the next, as lookups of later and later times do not. An end that
    does is moved up to the one before.
    """
    in_order = sorted(slices, key=lambda name: slices[name][0].start)
    reached: dict[int, int] = {}
    read: dict[str, Ranges] = {}
    for name in in_order:
        read[name] = tuple(_down_to(each, reached.get(each.partition, each.end)) for each in slices[name][1])
        reached |= {each.partition: each.end for each in read[name] if each.span}
    owned: dict[str, LogSlice] = {}
    following: dict[int, int] = {}
    later: datetime | None = None
    for name in reversed(in_order):
        window = slices[name][0]
        own = tuple(_up_to(each, following.get(each.partition, each.end)) for each in read[name])
        alone = Interval(start=window.start, end=window.end if later is None else min(window.end, later))
        owned[name] = LogSlice(ranges=read[name], owned=tuple(each for each in own if each.span), window=alone)
        following |= {each.partition: each.start for each in read[name] if each.span}
        later = window.start
    return {name: owned[name] for name in slices}


def cut(ranges: Ranges, pieces: int) -> tuple[Ranges, ...]:
    """As many parts of about the same size, each with its share of every partition; they touch and do not overlap."""
    return tuple(
        tuple(
            OffsetRange(
                partition=each.partition,
                start=each.start + each.span * number // pieces,
                end=each.start + each.span * (number + 1) // pieces,
            )
            for each in ranges
        )
        for number in range(pieces)
    )


def _down_to(each: OffsetRange, end: int) -> OffsetRange:
    """At least up to there, unless it is empty."""
    return each if not each.span else OffsetRange(partition=each.partition, start=each.start, end=max(each.end, end))


def _up_to(each: OffsetRange, end: int) -> OffsetRange:
    return OffsetRange(partition=each.partition, start=each.start, end=max(each.start, min(each.end, end)))
