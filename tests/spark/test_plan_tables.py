"""Every table that a query reads is found, at whatever depth, with whether its version is pinned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backcast.spark.inspection import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_table_inside_a_subquery_is_found_and_is_not_pinned_by_its_name_alone(
    spark: SparkSession, namespace: str
) -> None:
    for name in ("outside", "inside", "deep"):
        spark.sql(f"CREATE TABLE {namespace}.{name} USING iceberg AS SELECT id FROM range(3)")
    version = spark.sql(f"SELECT snapshot_id FROM {namespace}.outside.snapshots").collect()[0][0]
    spark.read.option("snapshot-id", version).table(f"{namespace}.outside").createOrReplaceTempView("pinned")
    rows = spark.sql(
        f"""SELECT * FROM pinned WHERE id IN (SELECT id FROM {namespace}.inside
            WHERE id < (SELECT max(id) FROM {namespace}.deep)) AND id IN (SELECT id FROM pinned)"""
    )
    names, unpinned, files = tables(rows)
    assert names == tuple(f"{namespace}.{name}" for name in ("deep", "inside", "outside"))
    assert unpinned == (f"{namespace}.deep", f"{namespace}.inside")
    assert not files


def test_a_delta_table_inside_a_subquery_is_found(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.format("delta").save(str(tmp_path / "inside"))
    rows = spark.sql(f"SELECT id FROM range(3) WHERE id IN (SELECT id FROM delta.`{tmp_path}/inside`)")
    names, unpinned, files = tables(rows)
    assert names == unpinned == (f"delta.`file:{tmp_path}/inside`",)
    assert not files


def test_files_inside_a_subquery_are_noticed(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "loose"))
    rows = spark.sql(f"SELECT id FROM range(3) WHERE id IN (SELECT id FROM parquet.`{tmp_path}/loose`)")
    assert tables(rows) == ((), (), True)
