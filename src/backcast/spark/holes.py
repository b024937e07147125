"""Offsets that no row carries, between two that rows do, or between a row and a mark that others have set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from backcast.model.log import OffsetRange, Ranges
from backcast.spark.predicates import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Spans = Mapping[int, tuple[int, int | None]]
"""From which offset of a partition on, and up to which."""


def holes(
    rows: DataFrame,
    position: tuple[str, str],
    most: int,
    marks: Iterable[tuple[int, int]] = (),
    within: Spans | None = None,
) -> list[tuple[OffsetRange, bool]]:
    """The first of them by partition and offset, any number of a partition, and whether any row is of that partition;
    one job. With `within` as if there were no other offsets.
    """
    placed = _placed(rows, position)
    if within is not None:
        if not within:
            return []
        placed = placed.where(reduce(or_, (_inside(*each) for each in within.items())))
    pieces = placed.selectExpr("p", "o AS first", "o + 1 AS after", "true AS is_row")
    marked = [(partition, offset, offset, False) for partition, offset in marks]
    if marked:
        schema = "p BIGINT, first BIGINT, after BIGINT, is_row BOOLEAN"
        pieces = pieces.union(rows.sparkSession.createDataFrame(marked, schema))
    before = F.lag("after").over(Window.partitionBy("p").orderBy("first", "after"))
    carried = F.max("is_row").over(Window.partitionBy("p"))
    told = pieces.withColumn("b", before).withColumn("carried", carried).where("first > b")
    found = told.orderBy("p", "b").limit(most).collect()
    return [(OffsetRange(partition=row["p"], start=row["b"], end=row["first"]), row["carried"]) for row in found]


def spans(rows: DataFrame, position: tuple[str, str], where: Column | None = None) -> dict[int, tuple[int, int]]:
    """The offsets of each partition from the first that a row carries to behind the last; one job."""
    placed = _placed(rows, position)
    inside = placed if where is None else placed.where(where)
    found = inside.groupBy("p").agg(F.min("o").alias("first"), F.max("o").alias("last"))
    return {row["p"]: (row["first"], row["last"] + 1) for row in found.collect()}


def beyond(rows: DataFrame, position: tuple[str, str], ends: Mapping[int, int]) -> Ranges:
    """From the first to the last offset of each partition that rows carry at or behind these ends; one job."""
    here = [_inside(partition, (end, None)) for partition, end in ends.items()]
    if not here:
        return ()
    found = spans(rows, position, reduce(or_, here))
    return tuple(OffsetRange(partition=key, start=start, end=end) for key, (start, end) in sorted(found.items()))


def _placed(rows: DataFrame, position: tuple[str, str]) -> DataFrame:
    partition, offset = (F.col(quote(name)).cast("bigint") for name in position)
    return rows.select(partition.alias("p"), offset.alias("o")).where("p IS NOT NULL AND o IS NOT NULL")


def _inside(partition: int, span: tuple[int, int | None]) -> Column:
    start, end = span
    found = (F.col("p") == partition) & (F.col("o") >= start)
    return found if end is None else found & (F.col("o") < end)
