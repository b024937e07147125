"""Rows counted by piece of time, whatever the type of the time column."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backcast.model.column import TimeColumn, TimeKind
from backcast.spark.predicates import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from backcast.model.time import Grain

_PIECE = "backcast_piece"


def counted_by_time(rows: DataFrame, column: TimeColumn, grain: Grain) -> tuple[dict[datetime, int], int]:
    """How many rows each piece of time has, by the wall clock time at which it starts, and how many have no time."""
    piece = F.date_trunc(grain.value, wall(column)).cast("string").alias(_PIECE)
    counts: dict[datetime, int] = {}
    nowhere = 0
    for row in rows.groupBy(piece).count().collect():
        if row[_PIECE] is None:
            nowhere = row["count"]
        else:
            counts[datetime.fromisoformat(row[_PIECE])] = row["count"]
    return counts, nowhere


def last_time(rows: DataFrame, column: TimeColumn, now: datetime) -> datetime | None:
    """The newest wall clock time that is not after now; None without any.

    By the greatest value first, which a format may know from its metadata; only a value of the future, or one that
    stands for no time, makes a second look necessary.
    """
    name = quote(column.column)
    greatest = rows.agg(F.max(F.col(name)).alias(column.column))
    found = _instant(greatest.select(wall(column).cast("string").alias(_PIECE)))
    if found is not None and found <= now:
        return found
    times = rows.select(wall(column).alias(_PIECE)).where(
        F.col(_PIECE) <= F.lit(f"{now:%Y-%m-%d %H:%M:%S}").cast("timestamp")
    )
    return _instant(times.agg(F.max(_PIECE).cast("string").alias(_PIECE)))


def _instant(rows: DataFrame) -> datetime | None:
    (row,) = rows.collect()
    return None if row[_PIECE] is None else datetime.fromisoformat(row[_PIECE])


def wall(column: TimeColumn) -> Column:
    """The value as a wall clock time of the column's zone; the session's own zone is UTC."""
    value = F.col(quote(column.column))
    if column.epoch_scale is not None:
        micros = (value * F.lit(1_000_000 // column.epoch_scale)).cast("bigint")
        return F.from_utc_timestamp(F.timestamp_micros(micros), column.zone)
    match column.kind:
        case TimeKind.TIMESTAMP:
            return F.from_utc_timestamp(value, column.zone)
        case TimeKind.DATE | TimeKind.TIMESTAMP_NTZ:
            return value.cast("timestamp")
        case _:
            return F.try_to_timestamp(value.cast("string"), F.lit(column.format))
