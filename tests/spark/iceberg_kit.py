"""An Iceberg table as other tools see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backcast.testing.target_iceberg import IcebergTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def iceberg(spark: SparkSession, table: str) -> Any:
    """The Java table."""
    return IcebergTable(spark, table).java()


def snapshot_ids(table: IcebergTable) -> set[str]:
    rows = table.spark.sql(f"SELECT snapshot_id FROM {table.name}.snapshots").collect()
    return {str(row.snapshot_id) for row in rows}
