"""The session that everything is measured in, with tables of both formats."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backcast.model.pipeline import TableFormat
from backcast.spark.session import open_session
from backcast.spark.settings import SessionSettings, embedded_catalog
from backcast.spark.versions import EMBEDDED_LAKE, Package
from bench.delta import DeltaTables
from bench.iceberg import IcebergTables
from bench.restatement import Restatement
from bench.tables import Shape, Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Lake:
    """One session, one Iceberg catalog called `lake` and folders for Delta tables; makes each restatement once."""

    def __init__(self, root: Path, spark: SparkSession, catalog: Path) -> None:
        self.root, self.spark, self.catalog = root, spark, catalog
        self._made: dict[tuple[TableFormat, Shape, str], Restatement] = {}

    @classmethod
    def open(cls, root: Path) -> Lake:
        settings = SessionSettings(
            app_name="backcast-bench",
            master="local[2]",
            packages=(*EMBEDDED_LAKE, Package.DELTA, Package.KAFKA),
            catalogs={"lake": embedded_catalog(root)},
            driver_memory="2g",
            log_file=root / "spark.log",
        )
        return cls(root, open_session(settings), root)

    def restatement(self, table_format: TableFormat, shape: Shape, name: str = "") -> Restatement:
        """The same one whenever it is asked for; a name tells apart two of one shape."""
        key = (table_format, shape, name)
        if key not in self._made:
            root = self.root / f"{table_format}_{shape.name}{name}"
            tables = self._tables(table_format, f"{shape.name}{name}", root)
            self._made[key] = Restatement.create(self.spark, tables, root, shape, self.catalog)
        return self._made[key]

    def _tables(self, table_format: TableFormat, namespace: str, root: Path) -> Tables:
        if table_format is TableFormat.ICEBERG:
            return IcebergTables(self.spark, namespace)
        return DeltaTables(self.spark, root / "tables")
