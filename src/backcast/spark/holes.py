"""Offsets that no row carries, between two that rows do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from backcast.model.log import OffsetRange, Ranges
from backcast.spark.predicates import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def holes(rows: DataFrame, position: tuple[str, str], most: int) -> Ranges:
    """The first of them by partition and offset, any number of a partition; one job."""
    partition, offset = (F.col(quote(name)).cast("bigint") for name in position)
    placed = rows.select(partition.alias("p"), offset.alias("o")).where("p IS NOT NULL AND o IS NOT NULL")
    before = F.lag("o").over(Window.partitionBy("p").orderBy("o"))
    found = placed.withColumn("b", before).where("o > b + 1").orderBy("p", "b").limit(most).collect()
    return tuple(OffsetRange(partition=row["p"], start=row["b"] + 1, end=row["o"]) for row in found)
