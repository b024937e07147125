"""A topic's log, as a plan pins it: literal offsets of every partition, and why they can be trusted to be there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, model_validator

from backcast.model.document import Document, later
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


def read_by_partition(each: Iterable[Ranges]) -> dict[int, int]:
    """How many offsets of each partition lie in any of them; those that several share are read once."""
    found: dict[int, int] = {}
    reached: dict[int, int] = {}
    for one in sorted((item for ranges in each for item in ranges), key=lambda item: item.start):
        start = max(one.start, reached.get(one.partition, one.start))
        found[one.partition] = found.get(one.partition, 0) + max(0, one.end - start)
        reached[one.partition] = max(one.end, start)
    return found


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition as the broker has it now."""

    partition: int
    log_start: int
    log_end: int
    """Exclusive. The last stable offset under `read_committed`, else the high watermark."""


def unread(log: Iterable[PartitionState], read: Mapping[int, int]) -> int:
    """Offsets of the log that lie behind what was read. A partition that is new is read from its first."""
    starts = ((each, max(each.log_start, read.get(each.partition, each.log_start))) for each in log)
    return sum(max(0, each.log_end - start) for each, start in starts)


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


@dataclass(frozen=True, slots=True)
class EventSpan:
    """Event times of a log's records."""

    first: datetime
    """From here on it has every record: what may have gone with those that retention took is left out."""
    last: datetime
    is_cut: bool
    """Retention has begun to take records."""


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

    Slices of a request that names several ranges of a partition hold several of it, too.
    """

    ranges: Ranges
    owned: Ranges
    only: Annotated[Ranges, later(())] = ()
    """Of what is read, the offsets that were asked for; others are counted as filtered. Empty: all."""
    window: Interval | None = None
    """Event time that this chunk alone counts as its own; None: all. It may read more, as warm-up."""


class ArchivedFile(Document):
    """A file of an archive that somebody else writes, as it was when it was planned with."""

    path: str
    size: int
    modified: int
    """Milliseconds since 1970."""


class ArchivePin(Document):
    """The archive of a topic as it was planned with, and the offsets that are taken from it instead of the log."""

    place: str
    """The table's name, or where the files lie."""
    location: str | None = None
    """How plans name a table that they know by its folder alone."""
    uuid: str = ""
    version: str | None = None
    """Of the table; None while it is empty, and for files."""
    files: tuple[ArchivedFile, ...] = ()
    ranges: Ranges = ()
    """What is read from it. The log is read from where each of them ends."""
    holes: Ranges = ()
    """Offsets inside these ranges among which records are missing; the first of them is, if the topic has no gaps."""

    def part(self, ranges: Ranges) -> Ranges:
        """Those of the offsets that come from here; empty ranges are left out."""
        return tuple(each for each in map(self._common, ranges) if each is not None)

    def rest(self, ranges: Ranges) -> Ranges:
        """Those of the offsets that come from the log; as many ranges as were given."""
        ours = ((each, self._common(each)) for each in ranges)
        return tuple(
            OffsetRange(partition=each.partition, start=each.start if one is None else one.end, end=each.end)
            for each, one in ours
        )

    def _common(self, wanted: OffsetRange) -> OffsetRange | None:
        ours = next((each for each in self.ranges if each.partition == wanted.partition), wanted)
        start, end = max(wanted.start, ours.start), min(wanted.end, ours.end)
        found = start < end and ours is not wanted
        return OffsetRange(partition=wanted.partition, start=start, end=end) if found else None


class SchemaPin(Document):
    """Which schema of a registry records are read as, and what the versions were called when that was decided."""

    side: str
    """`value` or `key`."""
    subject: str
    reader: int | None
    """Its id; None when a schema file says how records are read."""
    versions: dict[int, int]
    """The version of the subject that each id is."""


class LeftToStream(Document):
    """What a run does not read, because a stream that adds rows to the same table will: read by both, it is doubled."""

    stream: str
    ranges: Ranges


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
    doubtful: Annotated[Ranges, later(())] = ()
    """Offsets that are gone and held records of the window only if something else than time removed them."""
    to_end: bool = False
    """No record of the window can have been written after the last that is read."""
    slices: dict[str, LogSlice] = Field(default_factory=dict)
    """What each chunk reads, by its id."""
    archive: Annotated[ArchivePin | None, later(None)] = None
    """None: all of it comes from the log."""
    schemas: Annotated[tuple[SchemaPin, ...], later(())] = ()
    """Of Avro by a registry."""
    hand_over: Annotated[dict[int, int] | None, later(None)] = None
    """Of a bootstrap: the offset of each partition at which a stream must start, to read on exactly there."""
    left: Annotated[LeftToStream | None, later(None)] = None
    """None: nothing of the window is."""

    @property
    def ranges(self) -> Ranges:
        return tuple(each.range for each in self.partitions)

    @property
    def by_time(self) -> bool:
        """Whether a window of event time says which of the records become rows."""
        return any(each.window is not None for each in self.slices.values())

    @property
    def from_log(self) -> Ranges:
        return self.ranges if self.archive is None else self.archive.rest(self.ranges)


def before(ranges: Ranges, position: Mapping[int, int]) -> Ranges:
    """Of each range what lies before the position, which begins every partition that it does not name at 0."""
    return tuple(_up_to(each, position.get(each.partition, 0)) for each in ranges)


def behind(ranges: Ranges, position: Mapping[int, int]) -> Ranges:
    """The rest of them; empty ranges are left out."""
    starts = ((each, max(each.start, position.get(each.partition, 0))) for each in ranges)
    return tuple(
        OffsetRange(partition=each.partition, start=start, end=each.end) for each, start in starts if start < each.end
    )


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
