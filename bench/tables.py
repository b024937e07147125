"""The tables that are measured: their shape and rows, and what each format must be able to do with them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from backcast.model.pipeline import TableFormat

_LAST_YEAR = 2026
FIRST_DAY = date(_LAST_YEAR, 1, 1)
COLUMNS = (
    "id BIGINT, day DATE, shard INT, customer STRING, at TIMESTAMP, amount DECIMAL(12,2), quantity INT,"
    " revenue DECIMAL(14,2)"
)
OTHERS_A_DAY, OTHERS_A_COMMIT = 100, 1_000
"""Other files lie on days before the first one, and came in commits of a thousand, as years of a live writer leave
them. They are metadata alone: nothing here ever opens them."""


@dataclass(frozen=True, slots=True)
class Shape:
    """So many rows over so many days, the first ones of each year; with shards, so many partitions a day.

    There is one file for each partition.
    """

    rows: int
    days: int
    shards: int = 0
    years: int = 1

    @property
    def partitions(self) -> int:
        return self.days * max(self.shards, 1)

    @property
    def columns(self) -> tuple[str, ...]:
        """The partition columns."""
        return ("day", "shard") if self.shards else ("day",)

    @property
    def name(self) -> str:
        return f"r{self.rows}_{self.days}_{self.shards}_{self.years}"

    def dates(self) -> tuple[date, ...]:
        """Every day that has rows, in order."""
        starts = [date(_LAST_YEAR - back, 1, 1) for back in reversed(range(self.years))]
        return tuple(start + timedelta(days=day) for start in starts for day in range(self.days // self.years))

    def events(self, spark: SparkSession) -> DataFrame:
        """Values are spread like real ones: neither constant nor in order, so that files do not shrink to nothing."""
        year, day = f"{_LAST_YEAR} - id % {self.days} % {self.years}", f"id % {self.days} DIV {self.years}"
        return spark.range(self.rows).selectExpr(
            "id",
            f"date_add(make_date(CAST({year} AS INT), 1, 1), CAST({day} AS INT)) AS day",
            f"CAST(id DIV {self.days} % {max(self.shards, 1)} AS INT) AS shard",
            "concat('customer-', pmod(xxhash64(id), 100000)) AS customer",
            "timestamp_micros(1767225600000000 + pmod(xxhash64(id, 1), 86400000000)) AS at",
            "CAST(pmod(xxhash64(id, 2), 100000) / 100 AS DECIMAL(12,2)) AS amount",
            "CAST(1 + pmod(xxhash64(id, 3), 9) AS INT) AS quantity",
            "CAST(0 AS DECIMAL(14,2)) AS revenue",
        )


class Tables(Protocol):
    """Tables of one restatement in one format, handled as someone does who has Spark and no Backcast."""

    format: ClassVar[TableFormat]

    def name(self, table: str) -> str:
        """As SQL knows it."""

    def place(self, table: str) -> str:
        """As backcast.yaml knows it."""

    def create(self, table: str, shape: Shape, rows: DataFrame) -> None:
        """A new table with these rows, one file for each partition."""

    def head(self, table: str) -> str:
        """Its newest version."""

    def read(self, table: str, version: str) -> DataFrame:
        """All rows of that version."""

    def replace(self, table: str, where: str, rows: DataFrame) -> None:
        """Put the rows in place of those that match, in one commit."""

    def staged(self, table: str, branch: str) -> str:
        """A stage of the table, as SQL knows it."""

    def data_files(self, table: str) -> int:
        """Data files of the table and its stages in storage, whether or not any version knows them."""

    def add_others(self, table: str, count: int, a_commit: int = OTHERS_A_COMMIT) -> None:
        """Register so many other files, so many in each commit."""
