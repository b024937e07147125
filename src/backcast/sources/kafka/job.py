"""One job over a part of a topic: its rows, the proof of what became of every offset, and what had to be kept aside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F

from backcast.errors import ChunkFailed
from backcast.model.coverage import Coverage, GapPolicy, Status, seen
from backcast.model.log import Isolation, Ranges
from backcast.model.scope import during
from backcast.model.source import KafkaAccess, LogSource
from backcast.model.time import Interval
from backcast.model.words import many
from backcast.ports import Reading
from backcast.sources.kafka.coverage import expected_positions, observed_log, scan_coverage
from backcast.sources.kafka.decode import POSITION, PROBLEM, SCHEMA_ID, STATUS
from backcast.sources.kafka.quarantine import Part, write_quarantine
from backcast.sources.kafka.read import read_log, read_records
from backcast.spark.observation import asked
from backcast.spark.predicates import to_sql

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from backcast.model.coverage import Observed

_NAMED = 3
_HANDED_OVER = "handed_over"
_OURS = (PROBLEM, STATUS, SCHEMA_ID)


@dataclass(frozen=True)
class LogJob:
    """Which offsets neighbouring chunks read, and which of them they answer for."""

    spark: SparkSession
    access: KafkaAccess
    source: LogSource
    compacted: bool
    owned: Ranges
    beside: Ranges
    """Read for rows that belong to these chunks; what became of the offsets is told by the chunks that own them."""
    scope: tuple[Interval, ...] | None
    """Event time of all chunks of the run; None: every record is a row."""
    read: tuple[Interval, ...] | None
    """Event time that these chunks need."""
    own: tuple[Interval, ...] | None
    """Event time that is counted here and nowhere else."""

    def reading(self) -> Reading:
        """The rows, to be read once, and what can be told about them after that."""
        owned, observed = observed_log(self._owned, self.owned, self._within(self.scope))
        rows = owned.where(self._handed())
        if self.beside:
            # Counted for nobody: without it the filter is pushed into the decoding, which is then done twice.
            beside, _ = observed_log(self._decoded(self.beside), self.beside)
            rows = rows.unionByName(beside.where(self._handed()))
        is_row, counted = F.col(STATUS) == Status.ROW, Observation()
        if self.read != self.scope:
            # A record without a value has no event time either: no window leaves it out.
            rows = rows.where(~is_row | self._within(self.read))
        rows = rows.observe(counted, F.count(F.when(is_row & self._within(self.own), 1)).alias(_HANDED_OVER))
        return Reading(rows.drop(*_OURS), LogRows(self, observed, counted))

    def coverage(self, observed: Observed | None) -> Coverage:
        """From what was counted while rows went by, or by a scan when that leaves a doubt."""
        if observed is not None:
            found = seen(self.owned, observed, expected_positions(self.spark, self.owned))
            if found is not None:
                return found
        policy = GapPolicy(
            compacted=self.compacted, transactional=self.source.transactional, isolation=self.source.isolation
        )
        return scan_coverage(self._owned, self.owned, policy, self._within(self.scope), uncommitted=self._uncommitted)

    def problems(self) -> DataFrame:
        """Records of the owned offsets that could not be decoded."""
        return self._owned.where(F.col(PROBLEM).isNotNull())

    def handed_over(self) -> int:
        """Counted by reading once more."""
        found = [self._decoded(each) for each in (self.owned, self.beside) if each]
        is_row = F.col(STATUS) == Status.ROW
        return sum(each.where(is_row & self._within(self.own)).count() for each in found)

    def _handed(self) -> Column:
        """What a transform sees."""
        seen_by_it = [Status.ROW, *([Status.TOMBSTONE] if self.source.tombstones else [])]
        return F.col(STATUS).isin(*(each.value for each in seen_by_it))

    def _decoded(self, ranges: Ranges) -> DataFrame:
        return read_log(self.spark, self.access, self.source, ranges)

    def _uncommitted(self, ranges: Ranges) -> DataFrame:
        return read_records(self.spark, self.access, self.source, ranges, Isolation.UNCOMMITTED)

    def _within(self, windows: tuple[Interval, ...] | None) -> Column:
        if windows is None or self.source.time is None:
            return F.expr("true")
        return F.expr(to_sql(during((self.source.time,), windows), self._types))

    @cached_property
    def _owned(self) -> DataFrame:
        return self._decoded(self.owned)

    @cached_property
    def _types(self) -> dict[str, str]:
        return {field.name: field.dataType.simpleString() for field in self._owned.schema.fields}


@dataclass(frozen=True, slots=True)
class LogRows:
    """The port LogReading over one job."""

    job: LogJob
    observed: Callable[[], Observed | None]
    counted: Observation

    def proof(self) -> tuple[Coverage, int]:
        found = asked(self.counted)
        coverage = self.job.coverage(self.observed())
        return coverage, self.job.handed_over() if found is None else int(found[_HANDED_OVER])

    def quarantine(self, run_id: str, chunks: tuple[str, ...], at: datetime) -> None:
        place, problems = self.job.source.quarantine, self.job.problems()
        number = problems.count()
        if place is None or number > place.most:
            raise _too_many(self.job.source, number, problems.limit(_NAMED).collect())
        part = Part(run_id, self.job.source.topic, self.job.owned)
        write_quarantine(self.job.spark, place.table, part, problems, chunks, at)


def _too_many(source: LogSource, number: int, examples: list[Row]) -> ChunkFailed:
    first = "; ".join(
        f"partition {row[POSITION]['partition']}, offset {row[POSITION]['offset']}: {row[PROBLEM]}" for row in examples
    )
    place = source.quarantine
    allowed = f"{place.most} are allowed" if place else "there is no quarantine for them"
    hint = f"mend the declaration of the source, or set `quarantine` with a higher `most` under sources.{source.name}"
    what = f"{many(number, 'record')} of topic {source.topic} cannot be decoded, and {allowed}: {first}"
    return ChunkFailed(what, hint=hint)
