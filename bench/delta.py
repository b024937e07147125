"""Delta tables in folders below one folder."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from backcast.model.pipeline import TableFormat
from backcast.spark.delta.handle import STAGES, DeltaHandle
from backcast.spark.delta.paths import by_path
from bench.tables import COLUMNS, FIRST_DAY, OTHERS_A_COMMIT, OTHERS_A_DAY, Shape

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOG = "_delta_log"


class DeltaTables:
    """Implements `Tables`."""

    format: ClassVar[TableFormat] = TableFormat.DELTA

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder

    def name(self, table: str) -> str:
        return by_path(self._path(table))

    def place(self, table: str) -> str:
        return f'path: "{self._path(table)}"'

    def create(self, table: str, shape: Shape, rows: DataFrame) -> None:
        partitions = ", ".join(shape.columns)
        self._spark.sql(f"CREATE TABLE {self.name(table)} ({COLUMNS}) USING delta PARTITIONED BY ({partitions})")
        # Unlike Iceberg, Delta does not bring the rows of a partition together before it writes.
        rows.repartition(*shape.columns).write.format("delta").mode("append").save(self._path(table))

    def head(self, table: str) -> str:
        return str(self._spark.sql(f"DESCRIBE HISTORY {self.name(table)} LIMIT 1").collect()[0]["version"])

    def read(self, table: str, version: str) -> DataFrame:
        return self._spark.read.format("delta").option("versionAsOf", version).load(self._path(table))

    def replace(self, table: str, where: str, rows: DataFrame) -> None:
        rows.write.format("delta").mode("overwrite").option("replaceWhere", where).save(self._path(table))

    def staged(self, table: str, branch: str) -> str:
        return by_path(f"{self._path(table)}/{STAGES}/{branch}")

    def data_files(self, table: str) -> int:
        found = Path(self._path(table)).rglob("*.parquet")
        return sum(1 for file in found if _LOG not in file.parts)

    def add_others(self, table: str, count: int, a_commit: int = OTHERS_A_COMMIT) -> None:
        handle = DeltaHandle(self._spark, self.name(table))
        for start in range(0, count, a_commit):
            head = handle.at()
            adds = [{"add": _other(number)} for number in range(start, min(start + a_commit, count))]
            handle.jvm.commit(handle.jvm.transaction(head.log, head.snapshot), adds, "others")
        total = self._spark.sql(f"DESCRIBE DETAIL {self.name(table)}").collect()[0]["numFiles"]
        assert total > count, f"{total} files in the table, among them {count} others"

    def _path(self, table: str) -> str:
        return str(self._folder / table)


def _other(number: int) -> dict[str, Any]:
    """A file as a live writer registers it, with statistics of every column."""
    day = FIRST_DAY - timedelta(days=1 + number // OTHERS_A_DAY)
    low = {"id": number, "customer": "customer-0", "amount": 0.01, "quantity": 1, "revenue": 0.0}
    high = {"id": number + 1_000, "customer": "customer-99", "amount": 999.99, "quantity": 9, "revenue": 0.0}
    stats = {
        "numRecords": 1_000,
        "minValues": {**low, "at": f"{day}T00:00:00.000Z"},
        "maxValues": {**high, "at": f"{day}T23:59:59.999Z"},
        "nullCount": dict.fromkeys((*low, "at"), 0),
    }
    return {
        "path": f"day={day}/shard=0/other-{number}.parquet",
        "partitionValues": {"day": str(day), "shard": "0"},
        "size": 1_000_000,
        "modificationTime": 1_767_225_600_000,
        "dataChange": True,
        "stats": json.dumps(stats),
    }
