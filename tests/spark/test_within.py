"""A job keeps its rows, cuts warm-up, and refuses every other row by name."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from backcast.model.scope import during
from backcast.model.time import Interval
from backcast.spark.engine import SparkEngine
from backcast.testing.samples import DAY_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SOLD = DAY_COLUMN.model_copy(update={"column": "sold it's"})


def window(first: int, last: int) -> tuple[Interval, ...]:
    return (Interval(start=datetime(2026, 1, first, tzinfo=UTC), end=datetime(2026, 1, last, tzinfo=UTC)),)


def frame(spark: SparkSession, *rows: tuple[str | None, str]) -> DataFrame:
    texts = spark.createDataFrame(list(rows), "sold STRING, day STRING")
    return texts.selectExpr(f"CAST(sold AS DATE) AS `{SOLD.column}`", f"CAST(day AS DATE) AS {DAY_COLUMN.column}")


def kept(rows: DataFrame, *, by_partition: bool) -> int:
    columns = (SOLD, DAY_COLUMN) if by_partition else (SOLD,)
    return SparkEngine().within(rows, during(columns, window(5, 6)), during((SOLD,), window(4, 7))).count()


@pytest.mark.parametrize("by_partition", [False, True])
def test_rows_of_the_window_are_kept_and_warm_up_is_cut(spark: SparkSession, by_partition: bool) -> None:
    rows = frame(spark, ("2026-01-04", "2026-01-04"), ("2026-01-05", "2026-01-05"), ("2026-01-06", "2026-01-06"))
    assert kept(rows, by_partition=by_partition) == 1


@pytest.mark.parametrize("sold", ["2026-01-07", None], ids=["too late", "without a time"])
def test_a_row_outside_window_and_warm_up_is_refused_and_named(spark: SparkSession, sold: str | None) -> None:
    rows = frame(spark, ("2026-01-05", "2026-01-05"), (sold, "2026-01-05"))
    with pytest.raises(Exception, match=rf"outside the window and its warm-up: sold it's = {sold or 'NULL'}"):
        kept(rows, by_partition=False)


def test_a_row_of_the_window_in_another_partition_is_refused_instead_of_lost(spark: SparkSession) -> None:
    rows = frame(spark, ("2026-01-05", "2026-01-05"), ("2026-01-05", "2026-01-09"))
    with pytest.raises(Exception, match=r"in a partition of another window: .* = 2026-01-05, .* = 2026-01-09"):
        kept(rows, by_partition=True)
