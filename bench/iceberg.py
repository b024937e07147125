"""Iceberg tables in a namespace of the catalog `lake`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from backcast.model.pipeline import TableFormat
from backcast.spark.iceberg.handle import TableHandle
from bench.tables import COLUMNS, FIRST_DAY, OTHERS_A_COMMIT, OTHERS_A_DAY, Shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TOO_MANY_TO_HOLD_OPEN = 50


class IcebergTables:
    """Implements `Tables`."""

    format: ClassVar[TableFormat] = TableFormat.ICEBERG

    def __init__(self, spark: SparkSession, namespace: str) -> None:
        self._spark, self._namespace = spark, f"lake.{namespace}"
        spark.sql(f"CREATE NAMESPACE {self._namespace}")

    def name(self, table: str) -> str:
        return f"{self._namespace}.{table}"

    def place(self, table: str) -> str:
        return f"table: {self.name(table)}"

    def create(self, table: str, shape: Shape, rows: DataFrame) -> None:
        # A fanout writer keeps a buffer for every partition, which is too much for a thousand. Small tables keep the
        # default: sorting would make both sides of a ratio dearer and the ratio look better.
        properties = "TBLPROPERTIES ('write.spark.fanout.enabled' = 'false')"
        self._spark.sql(
            f"CREATE TABLE {self.name(table)} ({COLUMNS}) USING iceberg PARTITIONED BY ({', '.join(shape.columns)})"
            f" {properties if shape.partitions >= _TOO_MANY_TO_HOLD_OPEN else ''}"
        )
        rows.writeTo(self.name(table)).append()

    def head(self, table: str) -> str:
        newest = f"SELECT snapshot_id FROM {self.name(table)}.snapshots ORDER BY committed_at DESC LIMIT 1"
        return str(self._spark.sql(newest).collect()[0][0])

    def read(self, table: str, version: str) -> DataFrame:
        return self._spark.read.option("snapshot-id", version).table(self.name(table))

    def replace(self, table: str, where: str, rows: DataFrame) -> None:
        from pyspark.sql import functions as F

        rows.writeTo(self.name(table)).overwrite(F.expr(where))

    def staged(self, table: str, branch: str) -> str:
        return f"{self.name(table)}.`branch_{branch}`"

    def data_files(self, table: str) -> int:
        described = self._spark.sql(f"DESCRIBE EXTENDED {self.name(table)}").where("col_name = 'Location'")
        folder = Path(str(described.collect()[0][1]).removeprefix("file:"), "data")
        return sum(1 for _ in folder.rglob("*.parquet"))

    def add_others(self, table: str, count: int, a_commit: int = OTHERS_A_COMMIT) -> None:
        handle = TableHandle(self._spark, self.name(table))
        loaded = handle.load()
        for start in range(0, count, a_commit):
            append = loaded.newFastAppend()
            for number in range(start, min(start + a_commit, count)):
                if number % OTHERS_A_DAY == 0 or number == start:
                    day = FIRST_DAY - timedelta(days=1 + number // OTHERS_A_DAY)
                    builder = handle.java("DataFiles").builder(loaded.spec()).withPartitionPath(f"day={day}/shard=0")
                    builder = builder.withFormat("parquet").withFileSizeInBytes(1_000_000).withRecordCount(1_000)
                path = f"{loaded.location()}/data/day={day}/other-{number}.parquet"
                append.appendFile(builder.withPath(path).build())
            append.commit()
        loaded.refresh()
        total = int(loaded.currentSnapshot().summary().get("total-data-files"))
        assert total > count, f"{total} files in the table, among them {count} others"
