"""What the commands tell about a topic: where a moment or a window lies in it, and where a stream goes on."""

from __future__ import annotations

from datetime import datetime

from backcast.model.document import Document
from backcast.model.log import Isolation, OffsetRange, Ranges
from backcast.model.states import RunState
from backcast.model.time import Interval


class PartitionOffsets(Document):
    """Where a moment lies in one partition."""

    partition: int
    log_start: int
    offset: int | None
    """The first whose record time is not before the moment; None when no record is that late."""
    log_end: int
    record_time: datetime | None
    """Of the record found there."""

    @property
    def span(self) -> int:
        """Offsets from there to the end. Records may be fewer: markers and compacted records leave gaps."""
        return 0 if self.offset is None else max(0, self.log_end - self.offset)


class TopicOffsets(Document):
    """Where a moment of record time lies in a topic."""

    source: str
    topic: str
    topic_id: str
    isolation: Isolation
    timestamp_type: str
    at: datetime
    partitions: tuple[PartitionOffsets, ...]

    @property
    def span(self) -> int:
        return sum(each.span for each in self.partitions)


class HandOver(Document):
    """Where a stream must start so that it and a bootstrap read every record once."""

    run_id: str
    state: RunState
    source: str
    topic: str
    starting_offsets: dict[str, dict[int, int]]
    """By topic and partition, as Spark's option `startingOffsets` wants them."""
    streams: tuple[str, ...] = ()
    """Declared ones that begin there by themselves."""

    @property
    def offsets(self) -> dict[int, int]:
        return self.starting_offsets[self.topic]


class PartitionSurvey(Document):
    """What one partition holds of a window of event time."""

    partition: int
    scanned: OffsetRange
    first: int | None = None
    """The first offset with an event time in the window; None when there is none."""
    last: int | None = None
    matching: int = 0
    """Records in the window."""
    foreign: int = 0
    """Records between the first and the last that are not in it."""
    unreadable: int = 0
    """Records in the scanned range that could not be decoded: whether they belong is not known."""
    backward_seconds: float = 0.0
    """The most by which an event time between first and last lies behind one before it."""

    @property
    def held(self) -> OffsetRange | None:
        """The offsets that hold the window here."""
        if self.first is None or self.last is None:
            return None
        return OffsetRange(partition=self.partition, start=self.first, end=self.last + 1)


class WindowSurvey(Document):
    """Which offsets hold a window of event time, and how disordered they are."""

    source: str
    topic: str
    column: str
    zone: str
    window: Interval
    to_end: bool
    """Scanned to the end of the log; else as far as the declared slack says."""
    partitions: tuple[PartitionSurvey, ...]

    @property
    def ranges(self) -> Ranges:
        return tuple(each.held for each in self.partitions if each.held is not None)
