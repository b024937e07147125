"""How many files a job writes, and how many a task of it holds open: each costs megabytes of the executor."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.model.table import StageWrite
from backcast.spark.temporarily import temporarily
from backcast.testing.target_delta import DeltaLab
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


@pytest.mark.parametrize(
    ("rows", "setting", "shuffled"),
    [
        ("SELECT id, day, v FROM {table} VERSION AS OF {base}", "", False),
        ("SELECT id, day, max(v) AS v FROM {table} VERSION AS OF {base} GROUP BY id, day", "", True),
        ("SELECT id, day, v FROM {table} VERSION AS OF {base}", "write.distribution-mode", True),
    ],
    ids=["row by row", "grouped", "as the owner wants it"],
)
def test_rows_that_arrive_together_are_not_shuffled(
    spark: SparkSession, namespace: str, rows: str, setting: str, shuffled: bool
) -> None:
    """A fifth of a run's time; but only where each row is made of one, and where the table's owner said nothing."""
    table = IcebergLab(spark, namespace).create()
    table.append((1, 1, 0.0), (2, 2, 0.0))
    if setting:
        spark.sql(f"ALTER TABLE {table.name} SET TBLPROPERTIES ('{setting}' = 'hash')")
    target = table.target()
    base = target.facts().version
    frame = spark.sql(rows.format(table=table.name, base=base))
    stage = open_stage(target)
    commit = target.write(stage, StageWrite(("1", "2"), 1, days(1, 2), exact=False, together=True), frame)
    assert commit.rows == 2
    assert ("hashpartitioning(day" in _plan_of_newest_write(spark)) is shuffled


_BIG = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.files.maxPartitionBytes": "4096",
}
"""As with big inputs: Spark makes no task of many small ones, nor reads several files in one."""


@pytest.mark.parametrize("table_format", ["iceberg", "delta"])
def test_tasks_that_have_rows_of_every_partition_write_one_file_for_each(
    spark: SparkSession, namespace: str, tmp_path: Path, table_format: str
) -> None:
    """And rows that lie in one partition each where they are read are not shuffled for that."""
    table = (IcebergLab(spark, namespace) if table_format == "iceberg" else DeltaLab(spark, tmp_path)).create()
    table.append(*((number, day, 1.0) for number in range(20) for day in (1, 2)))
    table.append((20, 1, 1.0), (20, 2, 1.0))
    target = table.target()
    stage = open_stage(target)
    lying = target.read(stage.base, days(1, 2))
    grouped = lying.groupBy("id", "day").agg({"v": "max"}).withColumnRenamed("max(v)", "v")
    written = []
    with temporarily(spark, _BIG):
        for token, (rows, together) in enumerate([(grouped, True), (lying, False), (lying, True)], 1):
            asked = StageWrite(("1", "2"), token, days(1, 2), exact=False, together=together)
            commit = target.write(stage, asked, rows)
            assert commit.rows == 42
            written.append(len(commit.added))
    assert written == [2, 2, 4 if table_format == "delta" else 2], "Iceberg reads small files in one task"


def _plan_of_newest_write(spark: SparkSession) -> str:
    """As Spark's own history of queries has it."""
    history = spark._jsparkSession.sharedState().statusStore()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    found = history.executionsList()
    plans = [str(found.apply(number).physicalPlanDescription()) for number in range(found.size())]
    return next(plan for plan in reversed(plans) if "AppendData" in plan or "OverwriteByExpression" in plan)
