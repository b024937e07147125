"""What a stream left out of its table: what came after the watermark, what it has not read, and what neither tells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Literal

from backcast.model.document import Document
from backcast.model.gaps import PlannedFix
from backcast.model.log import OffsetRange
from backcast.model.request import Request
from backcast.model.time import Grain, Interval

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Lateness(StrEnum):
    """Why a record of the source is not in the table."""

    LATE = "late"
    """Its event time was not after the watermark in force when it was read: Spark drops it."""
    PENDING = "pending"
    """No committed batch has read it yet."""
    MISSING = "missing"
    """It was read in time."""
    UNKNOWN = "unknown"
    """It was read before the oldest batch that the checkpoint still knows, and may have been late."""


@dataclass(frozen=True, slots=True)
class Closing:
    """From when on a query drops a record: once the watermark has reached its event time, or the end of the first
    window that the record belongs to. In microseconds.
    """

    every: int = 0
    """From one window's start to the next one's; 0: the event time itself decides."""
    origin: int = 0
    length: int = 0

    @property
    def first(self) -> int:
        """From the start of the last window that a record can belong to, to the end of the first."""
        return self.length - (-(-self.length // self.every) - 1) * self.every if self.every else 0

    def oldest_open(self, watermark: datetime) -> datetime:
        """Where the first window begins that the watermark has not closed."""
        if not self.every:
            return watermark
        passed = (_micros(watermark) - self.length - self.origin) // self.every
        return _EPOCH + timedelta(microseconds=self.origin + (passed + 1) * self.every)


@dataclass(frozen=True, slots=True)
class Holding:
    """What a query writes in a later batch than the one that reads it."""

    windows: tuple[Closing, ...] = ()
    """Of event time; none: each moment is one of its own."""
    unknown: bool = False
    """There is more, and no plan tells how far it lies behind the watermark: sessions, joins, state of one's own."""

    def written_until(self, watermark: datetime, reach: timedelta) -> datetime:
        """Rows from before that moment are in the table. `reach` is how far the unknown lies behind the watermark."""
        known = [each.oldest_open(watermark) for each in self.windows or (Closing(),)]
        return min(*known, watermark - reach) if self.unknown else min(known)


@dataclass(frozen=True, slots=True)
class OpenWindows:
    """What a stream has read and will write later."""

    stream: str
    since: datetime | None
    """It will write no row from before that moment. None: it has written nothing yet."""
    watermark: datetime | None
    external: bool = False
    known: bool = True
    """False: where it stands cannot be read, and the moments are nothing."""


@dataclass(frozen=True, slots=True)
class ReadHistory:
    """Which batch read an offset, and from which event time on that batch took rows in. Times in microseconds."""

    ends: dict[int, tuple[int, ...]]
    """By partition: where each known batch, in order, ended."""
    marks: tuple[int | None, ...]
    """Of each batch: rows of this time or earlier were late. None: none was."""
    from_start: bool
    """The first known batch is the stream's first. Else what it read cannot be told from what was read before."""

    @classmethod
    def of(cls, batches: Sequence[tuple[int, dict[int, int], datetime | None]]) -> ReadHistory:
        """From committed batches in order: number, ends, watermark. Rows are late by the watermark of the batch before
        theirs; of the first that is known, its own is the most that it can have been.
        """
        partitions = sorted({number for _, ends, _ in batches for number in ends})
        watermarks = [None if each is None else _micros(each) for _, _, each in batches]
        from_start = bool(batches) and batches[0][0] == 0
        first = [None if from_start else watermarks[0]] if batches else []
        ends = {number: _ends(number, [each for _, each, _ in batches]) for number in partitions}
        return cls(ends, (*first, *watermarks[:-1]), from_start)


def _ends(partition: int, batches: Iterable[dict[int, int]]) -> tuple[int, ...]:
    """A partition that a batch does not know was read nothing of."""
    return tuple(each.get(partition, 0) for each in batches)


def _micros(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(microseconds=1)


class LateFound(Document):
    """Records of a window that the stream dropped when it read them, and the pieces of time that they touch."""

    windows: tuple[Interval, ...]
    """Pieces that the watermark has passed."""
    late: int
    unknown: int
    """Records of which its checkpoint no longer tells whether it did."""
    left_open: int
    """Pieces that were not looked at: the stream will still write there."""


class LatePiece(Document):
    """A piece of time in which the table is not what a run would make of the source now."""

    window: Interval
    added: int
    """Rows that a run would add."""
    changed: int
    removed: int
    """Rows that no record of the source explains."""
    late: int = 0
    """Records: of rows that differ where those can be traced, else all of the piece."""
    pending: int = 0
    missing: int = 0
    """Where rows cannot be traced: rows that differ and that no late or pending record explains."""
    unknown: int = 0
    is_open: bool = False
    """The watermark has not passed it: the stream will still write there."""

    @property
    def to_mend(self) -> bool:
        return bool(self.late or self.missing or self.unknown)

    @property
    def held_back(self) -> bool:
        """A run now would double what the stream is about to write."""
        return self.is_open or bool(self.pending)


class SparkCount(Document):
    """What Spark itself counted as dropped, in the batches of a stream that are on record: `numRowsDroppedByWatermark`.

    Groups, where it adds up before it looks; of every window, also of those that were mended since.
    """

    rows: int
    first: int
    """The oldest batch that was counted."""
    last: int


class LateReport(Document):
    """A stream's table against its source."""

    stream: str
    pipeline: str
    dataset: str
    table: str
    version: str | None
    topic: str
    checkpoint: str
    batch: int
    watermark: datetime | None
    oldest: int
    """The oldest batch that the checkpoint still knows."""
    by: Literal["position", "key", "pieces"]
    """How rows were traced to records; pieces: they cannot be, and whole pieces of time were compared."""
    grain: Grain
    zone: str
    window: Interval
    expected: int
    """Rows that a run would make."""
    rows: int
    """Rows that the table has."""
    pieces: tuple[LatePiece, ...]
    """Those that differ."""
    offsets: tuple[OffsetRange, ...] = ()
    """Where rows are traced: the records to read again."""
    requests: tuple[Request, ...] = ()
    notes: tuple[str, ...] = ()
    plans: tuple[PlannedFix, ...] = ()
    by_spark: SparkCount | None = None
    """None of a stream that is not run here."""

    def total(self, which: Lateness) -> int:
        return sum(int(getattr(each, which.value)) for each in self.pieces)

    @property
    def sound(self) -> bool:
        """Nothing is left out for good, as far as can be told now."""
        return not any(each.to_mend and not each.is_open for each in self.pieces)
