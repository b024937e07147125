"""Records that came too late for a stream, told by its checkpoint: which batch read them, and with which watermark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backcast.model.late import Closing, Lateness, ReadHistory
from backcast.model.quarantine import POSITION
from backcast.model.scope import during
from backcast.sources.kafka.survey import micros
from backcast.spark.lateness import ORDER, closes, lateness
from backcast.spark.predicates import quote, to_sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from backcast.model.stream import StreamSpec
    from backcast.model.time import Interval
    from backcast.sources.kafka.history import Batch

CODE = "_lateness"
_HIT, _TAKEN, _ALL = "_hit", "_taken", -1


@dataclass(frozen=True, slots=True)
class LateRecords:
    """What became of the records of a stream's topic. `closing` says when its query drops one; None: never."""

    stream: StreamSpec
    batches: tuple[Batch, ...]
    closing: Closing | None

    def coded(self, rows: DataFrame) -> DataFrame:
        """With what became of each record, as CODE."""
        return rows.withColumn(CODE, self.code(rows))

    def code(self, rows: DataFrame) -> Column:
        """The place in ORDER of what became of a record."""
        partition, offset = (F.col(f"{POSITION}.{name}") for name in ("partition", "offset"))
        never = F.lit(None).cast("bigint")
        closed = never if self.closing is None else closes(self.closing, self._event(rows))
        return lateness(partition, offset, closed, self._history)

    def by_window(
        self, rows: DataFrame, windows: Mapping[str, Interval], again: LateRecords | None = None
    ) -> tuple[dict[str, Late], Late]:
        """Of windows that have some: the records that were late, or may have been; and all of them, each once. One job.

        A record may be in several windows. `again` tells which of them another query took.
        """
        time, names = self.stream.source.time, list(windows)
        if time is None or not windows:
            return {}, Late()
        types = dict(rows.dtypes)
        inside = [F.expr(to_sql(during((time,), (windows[name],)), types)) for name in names]
        hits = F.array_compact(F.array(*(F.when(each, F.lit(at)) for at, each in enumerate(inside))))
        told = [ORDER.index(each) for each in (Lateness.LATE, Lateness.UNKNOWN)]
        in_time = F.lit(ORDER.index(Lateness.MISSING))
        second = F.lit(True) if again is None else again.code(rows) == in_time
        late = rows.select(self.code(rows).alias(CODE), second.alias(_TAKEN), hits.alias(_HIT))
        late = late.where(F.col(CODE).isin(told) & (F.size(_HIT) > 0))
        each_hit = late.select(CODE, _TAKEN, F.explode(F.concat(_HIT, F.array(F.lit(_ALL)))).alias(_HIT))
        found: dict[int, Late] = {}
        for row in each_hit.groupBy(_HIT, CODE, _TAKEN).count().collect():
            is_late, number = ORDER[row[CODE]] is Lateness.LATE, int(row["count"])
            new = Late(number, 0, number if row[_TAKEN] else 0) if is_late else Late(unknown=number)
            found[row[_HIT]] = found.get(row[_HIT], Late()) + new
        return {names[at]: each for at, each in sorted(found.items()) if at != _ALL}, found.get(_ALL, Late())

    def may_have(self, window: Interval) -> bool:
        """Whether a record of that event time can have been late in any batch that is known."""
        time, watermark = self.stream.source.time, self.stream.watermark
        if self.closing is None or time is None:
            return False
        other = watermark is not None and watermark.column != time.column
        marks = [each.watermark for each in self.batches if each.committed and each.watermark is not None]
        return bool(marks) and (other or max(marks) >= window.start)

    @property
    def _history(self) -> ReadHistory:
        return ReadHistory.of([(each.number, each.ends, each.watermark) for each in self.batches if each.committed])

    def _event(self, rows: DataFrame) -> Column:
        time, watermark = self.stream.source.time, self.stream.watermark
        if watermark is not None and (time is None or watermark.column != time.column):
            return F.unix_micros(F.col(quote(watermark.column)).cast("timestamp"))
        return F.lit(None).cast("bigint") if time is None else micros(time, dict(rows.dtypes)[time.column])


@dataclass(frozen=True, slots=True)
class Late:
    """How many records."""

    late: int = 0
    unknown: int = 0
    """The checkpoint no longer tells."""
    taken: int = 0
    """Of the late ones, by another query."""

    def __add__(self, other: Late) -> Late:
        return Late(self.late + other.late, self.unknown + other.unknown, self.taken + other.taken)
