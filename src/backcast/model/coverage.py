"""The proof that a pinned part of a log was read: what became of every offset, and why some hold nothing.

An offset of a range is a row, a record outside the window or without time, a tombstone, a quarantined record, or a
gap. A gap counts as explained only by what the topic is: compaction takes records away, transactions leave markers and
aborted records.
Every other gap is a hole, and an offset that was read twice is an overlap; either rejects the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from backcast.model.digest import Digest
from backcast.model.document import Document, later
from backcast.model.log import Isolation, OffsetRange, Ranges
from backcast.model.words import many


class Status(StrEnum):
    """What became of one record."""

    ROW = "row"
    FILTERED = "filtered"
    """Decoded, and its event time is outside the window."""
    TOMBSTONE = "tombstone"
    QUARANTINED = "quarantined"
    TIMELESS = "timeless"
    """Decoded, and without an event time: in no window."""


STATUSES = tuple(Status)

Counts = Mapping[tuple[int, Status], int]
"""Records by partition and status."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What was counted while records went through a job."""

    positions: Digest
    """Over (partition, offset) of every record."""
    rows: int
    others: Counts
    """Every status but rows, by partition. Exact."""
    schema_ids: Mapping[int, int]
    """Avro: ids of writer schemas with the number of their records; only those that were met."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """One partition as a scan of its own found it; what is there twice counts once, and as one of `doubled`."""

    partition: int
    counts: Mapping[Status, int]
    doubled: int = 0
    first_gap: int | None = None

    @property
    def records(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class GapPolicy:
    """What may leave gaps in the topic."""

    compacted: bool
    transactional: bool
    isolation: Isolation


class PartitionCoverage(Document):
    """Every offset of one range, by what became of it."""

    partition: int
    start: int
    end: int
    rows: int = 0
    filtered: int = 0
    tombstones: int = 0
    quarantined: int = 0
    timeless: Annotated[int, later(0)] = 0
    compacted: int = 0
    """Gaps of a topic that is compacted."""
    markers: int = 0
    """Gaps that the ends of transactions left."""
    aborted: int = 0
    """Records of transactions that were aborted; only readers of committed records miss them."""
    unexplained: int = 0
    first_unexplained: int | None = None
    doubled: int = 0

    @property
    def span(self) -> int:
        return self.end - self.start

    @property
    def records(self) -> int:
        return self.rows + self.filtered + self.tombstones + self.quarantined + self.timeless

    @property
    def complete(self) -> bool:
        explained = self.records + self.compacted + self.markers + self.aborted
        return not self.unexplained and not self.doubled and explained == self.span


class Coverage(Document):
    """The proof for several ranges, in order of partitions and offsets."""

    partitions: tuple[PartitionCoverage, ...] = ()
    schema_ids: Annotated[dict[int, int], later({})] = Field(default_factory=dict)
    """Avro by a registry: how many records each schema wrote, by its id."""

    @property
    def complete(self) -> bool:
        return all(each.complete for each in self.partitions)

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.partitions)

    @property
    def filtered(self) -> int:
        return sum(each.filtered for each in self.partitions)

    @property
    def tombstones(self) -> int:
        return sum(each.tombstones for each in self.partitions)

    @property
    def quarantined(self) -> int:
        return sum(each.quarantined for each in self.partitions)

    @property
    def ranges(self) -> Ranges:
        return tuple(OffsetRange(partition=each.partition, start=each.start, end=each.end) for each in self.partitions)

    @property
    def problems(self) -> tuple[str, ...]:
        """One sentence for each partition that has holes or overlaps."""
        return tuple(_sentence(each) for each in self.partitions if not each.complete)

    def __add__(self, other: Coverage) -> Coverage:
        """Both proofs as one, joined where their ranges touch; what is in both is an overlap."""
        ids = Counter(self.schema_ids) + Counter(other.schema_ids)
        return Coverage(partitions=tuple(_joined([*self.partitions, *other.partitions])), schema_ids=dict(ids))


def seen(ranges: Ranges, observed: Observed, expected: Digest) -> Coverage | None:
    """The proof out of what a job counted, when it saw each expected offset once. None: only a scan can tell.

    A gap, a task that ran twice, an input that was read twice: each makes the digests differ.
    """
    if observed.positions != expected:
        return None
    found = []
    for each in (one for one in ranges if one.span):
        others = {status: observed.others.get((each.partition, status), 0) for status in STATUSES}
        rows = each.span - sum(others.values())
        found.append(_covered(each, {**others, Status.ROW: rows}))
    if sum(each.rows for each in found) != observed.rows or any(each.rows < 0 for each in found):
        return None
    return Coverage(partitions=tuple(found), schema_ids=dict(observed.schema_ids))


def explained(
    ranges: Ranges, scanned: Iterable[Scanned], policy: GapPolicy, uncommitted: Mapping[int, int] | None = None
) -> Coverage:
    """The proof out of a scan, with gaps explained by what the topic is.

    `uncommitted` is how many records of each partition a reader of uncommitted records finds: those that are more than
    the scan's were aborted, which also shows that there are transactions where nobody declared them.
    """
    by_number = {each.partition: each for each in scanned}
    found = []
    for each in (one for one in ranges if one.span):
        scan = by_number.get(each.partition, Scanned(each.partition, {}, first_gap=each.start))
        aborted = 0 if uncommitted is None else max(0, uncommitted.get(each.partition, 0) - scan.records)
        found.append(_explained(each, scan, policy, aborted))
    return Coverage(partitions=tuple(found))


def _explained(each: OffsetRange, scan: Scanned, policy: GapPolicy, aborted: int) -> PartitionCoverage:
    covered = _covered(each, scan.counts).model_copy(update={"doubled": scan.doubled})
    gaps = each.span - scan.records
    if gaps <= 0:
        return covered
    if policy.compacted:
        return covered.model_copy(update={"compacted": gaps})
    if policy.transactional or aborted:
        aborted = min(aborted, gaps)
        return covered.model_copy(update={"aborted": aborted, "markers": gaps - aborted})
    return covered.model_copy(update={"unexplained": gaps, "first_unexplained": scan.first_gap})


def _covered(each: OffsetRange, counts: Mapping[Status, int]) -> PartitionCoverage:
    return PartitionCoverage(
        partition=each.partition,
        start=each.start,
        end=each.end,
        rows=counts.get(Status.ROW, 0),
        filtered=counts.get(Status.FILTERED, 0),
        tombstones=counts.get(Status.TOMBSTONE, 0),
        quarantined=counts.get(Status.QUARANTINED, 0),
        timeless=counts.get(Status.TIMELESS, 0),
    )


def _joined(each: list[PartitionCoverage]) -> list[PartitionCoverage]:
    joined: list[PartitionCoverage] = []
    for one in sorted((one for one in each if one.span), key=lambda one: (one.partition, one.start, one.end)):
        if joined and joined[-1].partition == one.partition and one.start <= joined[-1].end:
            joined[-1] = _appended(joined[-1], one)
        else:
            joined.append(one)
    return joined


_SUMS = (
    "rows",
    "filtered",
    "tombstones",
    "quarantined",
    "timeless",
    "compacted",
    "markers",
    "aborted",
    "unexplained",
    "doubled",
)


def _appended(first: PartitionCoverage, second: PartitionCoverage) -> PartitionCoverage:
    sums = {name: getattr(first, name) + getattr(second, name) for name in _SUMS}
    firsts = (first.first_unexplained, second.first_unexplained)
    sums["doubled"] += min(first.end, second.end) - second.start
    return PartitionCoverage(
        partition=first.partition,
        start=first.start,
        end=max(first.end, second.end),
        first_unexplained=min((offset for offset in firsts if offset is not None), default=None),
        **sums,
    )


def _sentence(each: PartitionCoverage) -> str:
    where = f"partition {each.partition}, offsets {each.start} to {each.end}"
    if each.unexplained:
        hole = f"no record at {many(each.unexplained, 'offset')}, the first is {each.first_unexplained}"
        return f"{where}: {hole}, and nothing about the topic explains it"
    return f"{where}: {many(each.doubled, 'offset')} read twice"
