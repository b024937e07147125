"""Metrics by groups of rows: a copy of each row is grouped by what the metric asks for, in the job of the scan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.window import Window

from backcast.ports.rules import MOST_GROUPS
from backcast.spark.rule_conditions import column

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyspark.sql import Column, DataFrame

_RANK = "backcast_rank"
_LONGEST = 60


def values(by: Sequence[str], columns: Collection[str]) -> list[Column]:
    """What rows of a group have in common, as text: columns, or SQL over them."""
    return [(column(each) if each in columns else F.expr(each)).cast("string") for each in by]


def group_of(by: Sequence[str], columns: Collection[str]) -> tuple[Column, Column]:
    """The number of a row's group, and what to call it. Equal values have equal numbers; others, as good as none."""
    texts = values(by, columns)
    hashed = F.xxhash64(*(part for text in texts for part in (text.isNull(), text)))
    return hashed, F.concat_ws(", ", *(F.substring(F.coalesce(text, F.lit("null")), 1, _LONGEST) for text in texts))


def at_most(grouped: DataFrame, copy: str, bucket: str, first: int) -> DataFrame:
    """Of each copy from that number on one group more than are judged: who has it knows that there are too many."""
    rank = F.row_number().over(Window.partitionBy(copy).orderBy(bucket))
    return grouped.withColumn(_RANK, rank).where((F.col(copy) < first) | (F.col(_RANK) <= MOST_GROUPS + 1))
