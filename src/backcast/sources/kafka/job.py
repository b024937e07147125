"""One job over a part of a topic: its rows, the proof of what became of every offset, and what had to be kept aside."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Observation
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

    from pyspark.sql import Column, Row, SparkSession

    from backcast.model.coverage import Observed

_NAMED = 3
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

    def reading(self) -> Reading:
        """The rows, to be read once, and what can be told about them after that."""
        owned = [observed_log(self._decoded(each), each, self._within(self.scope)) for each in self.owned]
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
        within = self._within(self.scope)
        return scan_coverage(self._decoded(ranges), ranges, policy, within, uncommitted=self._uncommitted), True

    def problems(self) -> DataFrame:
        """Records of the owned offsets that could not be decoded."""
        return self._all(self.owned).where(F.col(PROBLEM).isNotNull())

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
        return read_log(self.spark, self.access, self.source, ranges)

    def _uncommitted(self, ranges: Ranges) -> DataFrame:
        return read_records(self.spark, self.access, self.source, ranges, Isolation.UNCOMMITTED)

    def _within(self, windows: tuple[Interval, ...] | None) -> Column:
        if windows is None or self.source.time is None:
            return F.expr("true")
        return F.expr(to_sql(during((self.source.time,), windows), self._types))

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

    def quarantine(self, run_id: str, chunks: tuple[str, ...], number: int, at: datetime) -> None:
        place, problems = self.job.source.quarantine, self.job.problems()
        if place is None or number > place.most:
            raise _too_many(self.job.source, number, problems.limit(_NAMED).collect())
        part = Part(run_id, self.job.source.topic, tuple(each for layer in self.job.owned for each in layer))
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
