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
