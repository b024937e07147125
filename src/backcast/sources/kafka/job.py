"""One job over a part of a topic: its rows, the proof of what became of every offset, and what had to be kept aside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from backcast.model.coverage import Coverage, GapPolicy, Status, seen
from backcast.model.log import Isolation, Ranges
from backcast.model.quarantine import POSITION, REJECTED
from backcast.model.scope import during
from backcast.model.source import KafkaAccess, LogSource
from backcast.model.time import Interval
from backcast.ports import Reading
from backcast.sources.kafka.coverage import count_schema_ids, expected_positions, observed_log, scan_coverage
from backcast.sources.kafka.decode import PROBLEM, SCHEMA_ID, STATUS
from backcast.sources.kafka.read import read_log, read_records
from backcast.sources.kafka.unusable import MINE, Aside, set_aside
from backcast.spark.observation import asked
from backcast.spark.predicates import balanced, to_sql

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from pyspark.sql import Column, SparkSession

    from backcast.model.coverage import Observed
    from backcast.ports import Unusable
    from backcast.sources.kafka.archive import Archived
    from backcast.sources.kafka.writers import Schemas

_HANDED_OVER = "handed_over"
_OURS = (PROBLEM, STATUS, SCHEMA_ID)


@dataclass(frozen=True)
class LogJob:
    """Which offsets the chunks of a job read, and which of them they answer for. Both in layers, see `model.pieces`."""

    spark: SparkSession
    access: KafkaAccess
    source: LogSource
    compacted: bool
    owned: tuple[Ranges, ...]
    beside: tuple[Ranges, ...]
    """Read for rows that belong to these chunks; what became of the offsets is told by the chunks that own them."""
    scope: tuple[Interval, ...] | None
    """Event time of all chunks of the run; None: every record is a row."""
    read: tuple[Interval, ...] | None
    """Event time that these chunks need."""
    own: tuple[Interval, ...] | None
    """Event time that is counted here and nowhere else."""
    schemas: Schemas | None = None
    """As the plan pinned them; None: as they are now."""
    archived: Archived | None = None
    """What is read from an archive instead of the log."""
    only: Ranges = ()
    """Of what is read, the offsets that were asked for; empty: all."""

    def reading(self) -> Reading:
        """The rows, to be read once, and what can be told about them after that."""
        ids = self._schema_ids
        owned = [observed_log(self._decoded(each), each, self._within(self.scope), ids) for each in self.owned]
        # Counted for nobody: without it the filter is pushed into the decoding, which is then done twice.
        beside = [observed_log(self._decoded(each), each) for each in self.beside]
        layers = [frame.where(self._handed()) for frame, _ in (*owned, *beside)]
        rows = reduce(DataFrame.unionByName, layers) if layers else self._nothing
        is_row, counted = F.col(STATUS) == Status.ROW, Observation()
        if self.read != self.scope:
            # A record without a value has no event time either: no window leaves it out.
            rows = rows.where(~is_row | self._within(self.read))
        rows = rows.observe(counted, F.count(F.when(is_row & self._within(self.own), 1)).alias(_HANDED_OVER))
        return Reading(rows.drop(*_OURS), LogRows(self, tuple(observed for _, observed in owned), counted))

    def coverage(self, number: int, observed: Observed | None) -> tuple[Coverage, bool]:
        """Of one layer: from what was counted while rows went by, or by a scan (True) when that leaves a doubt."""
        ranges = self.owned[number]
        if observed is not None:
            found = seen(ranges, observed, expected_positions(self.spark, ranges))
            if found is not None:
                return found, False
        policy = GapPolicy(
            compacted=self.compacted, transactional=self.source.transactional, isolation=self.source.isolation
        )
        frame, within = self._decoded(ranges), self._within(self.scope)
        found = scan_coverage(frame, ranges, policy, within, uncommitted=self._uncommitted)
        if not self._schema_ids:
            return found, True
        return found.model_copy(update={"schema_ids": count_schema_ids(frame)}), True

    def problems(self) -> DataFrame:
        """Records of the owned offsets that could not be decoded: position and problem."""
        return self._all(self.owned).where(F.col(PROBLEM).isNotNull()).select(POSITION, PROBLEM)

    def rejected(self, found: DataFrame) -> DataFrame:
        """Position and reason of records that a transform rejected, each once, as position and problem.

        `_mine` tells whether the record is counted here; it is null for a position that was not read.
        """
        own_time, is_row = F.coalesce(self._within(self.own), F.lit(False)), F.col(STATUS) == Status.ROW
        owned = self._all(self.owned).withColumn(MINE, ~is_row | own_time)
        beside = self._all(self.beside).withColumn(MINE, is_row & own_time)
        place = {name: F.col(f"{POSITION}.{name}") for name in ("partition", "offset")}
        records = owned.unionByName(beside).select(*(each.alias(name) for name, each in place.items()), POSITION, MINE)
        topic = F.col(f"{POSITION}.topic")
        ours = found.where(topic.isNull() | (topic == self.source.topic))
        reasons = ours.groupBy(*(each.alias(name) for name, each in place.items())).agg(F.min(REJECTED).alias(PROBLEM))
        return reasons.join(records, list(place), "left").select(POSITION, PROBLEM, MINE)

    def handed_over(self) -> int:
        """Counted by reading once more."""
        is_row = F.col(STATUS) == Status.ROW
        return self._all((*self.owned, *self.beside)).where(is_row & self._within(self.own)).count()

    def _all(self, layers: tuple[Ranges, ...]) -> DataFrame:
        return reduce(DataFrame.unionByName, map(self._decoded, layers), self._nothing)

    def _handed(self) -> Column:
        """What a transform sees."""
        seen_by_it = [Status.ROW, *([Status.TOMBSTONE] if self.source.tombstones else [])]
        return F.col(STATUS).isin(*(each.value for each in seen_by_it))

    def _decoded(self, ranges: Ranges) -> DataFrame:
        frame = read_log(self.spark, self.access, self.source, ranges, self.schemas, self.archived)
        if not self.only:
            return frame
        asked_for = F.expr(among(self.only))
        status = F.when(asked_for, F.col(STATUS)).otherwise(Status.FILTERED.value)
        return frame.withColumns({STATUS: status, PROBLEM: F.when(asked_for, F.col(PROBLEM))})

    def _uncommitted(self, ranges: Ranges) -> DataFrame:
        return read_records(self.spark, self.access, self.source, ranges, Isolation.UNCOMMITTED, self.archived)

    def _within(self, windows: tuple[Interval, ...] | None) -> Column:
        if windows is None or self.source.time is None:
            return F.expr("true")
        return F.expr(to_sql(during((self.source.time,), windows), self._types))

    @property
    def _schema_ids(self) -> tuple[int, ...]:
        value = None if self.schemas is None else self.schemas.value
        return () if value is None else tuple(value.by_id)

    @cached_property
    def _nothing(self) -> DataFrame:
        return self._decoded(())

    @cached_property
    def _types(self) -> dict[str, str]:
        return {field.name: field.dataType.simpleString() for field in self._nothing.schema.fields}


@dataclass(frozen=True, slots=True)
class LogRows:
    """The port LogReading over one job."""

    job: LogJob
    observed: tuple[Callable[[], Observed | None], ...]
    """Of each layer that is owned."""
    counted: Observation

    def proof(self) -> tuple[Coverage, int]:
        found = asked(self.counted)
        layers = [self.job.coverage(number, observed()) for number, observed in enumerate(self.observed)]
        coverage = sum((each for each, _ in layers), Coverage())
        handed_over = None if found is None else int(found[_HANDED_OVER])
        if handed_over != coverage.rows and any(scanned for _, scanned in layers):
            # Tasks that were repeated counted rows twice.
            handed_over = None
        return coverage, self.job.handed_over() if handed_over is None else handed_over

    @property
    def topic(self) -> str:
        return self.job.source.topic

    @property
    def most(self) -> int | None:
        place = self.job.source.quarantine
        return None if place is None else place.most

    def quarantine(self, run_id: str, chunks: tuple[str, ...], found: Unusable, at: datetime) -> int:
        rejected = None if found.rejected is None else self.job.rejected(found.rejected)
        return set_aside(self.job.source, Aside(run_id, chunks, found, self.job.problems(), rejected, at))


def among(ranges: Ranges) -> str:
    """Whether a record's position is one of these, however many they are."""
    single: dict[int, list[str]] = {}
    parts = []
    for each in ranges:
        if each.span == 1:
            single.setdefault(each.partition, []).append(f"{each.start}L")
        else:
            inside = f"{POSITION}.offset >= {each.start}L AND {POSITION}.offset < {each.end}L"
            parts.append(f"({POSITION}.partition = {each.partition} AND {inside})")
    parts += [
        f"({POSITION}.partition = {number} AND {POSITION}.offset IN ({', '.join(offsets)}))"
        for number, offsets in single.items()
    ]
    return balanced(parts, lambda left, right: f"({left} OR {right})")
