"""How many files a task of a big group holds open: each costs megabytes of the executor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backcast.testing.target_iceberg import IcebergLab
from backcast.testing.target_moves import days, frame, open_stage, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("many", "by", "in_order"), [(50, "day", False), (51, "day", True), (3, "day, bucket(2, id)", True)]
)
def test_a_task_of_a_big_group_writes_one_file_after_the_other(
    spark: SparkSession, namespace: str, many: int, by: str, in_order: bool
) -> None:
    """Rows sorted by partition let Iceberg close a file before the next; a small group is spared the sort."""
    table = IcebergLab(spark, namespace).create(by=by)
    table.append((0, 1, 0.0))
    target = table.target()
    rows = frame(spark, ((day, day, 1.0) for day in range(1, many + 1)))
    chunks = tuple(str(day) for day in range(1, many + 1))
    commit = write(target, open_stage(target), days(1, many), rows, chunks=chunks)
    assert len(commit.added) == commit.rows == many
    assert ("Sort" in _plan_of_newest_write(spark)) is in_order


def _plan_of_newest_write(spark: SparkSession) -> str:
    """As Spark's own history of queries has it."""
    history = spark._jsparkSession.sharedState().statusStore()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    found = history.executionsList()
    plans = [str(found.apply(number).physicalPlanDescription()) for number in range(found.size())]
    return next(plan for plan in reversed(plans) if "AppendData" in plan or "OverwriteByExpression" in plan)
