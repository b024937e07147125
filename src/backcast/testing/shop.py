"""A small shop to restate: sales as input, revenue per day and shop as output, with a bug that the new code mends.

Used by our own tests and good for yours: `Shop.create(...)` gives a project in a folder, and its tables.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from backcast.control import ControlPlane
from backcast.model.pipeline import TableFormat
from backcast.model.request import Request
from backcast.project.config import load_project
from backcast.project.wiring import Wiring

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAYS = 10
SHOPS = 4
SALES_PER_DAY = 40

_TRANSFORM = """
from pyspark.sql import functions as F

import backcast


@backcast.transform(name="revenue", version="2.0.0")
def revenue(inputs, ctx):
    sales = inputs["sales"]
    return (
        sales.groupBy(F.to_date("sold_at").alias("day"), "shop")
        .agg(F.count(F.lit(1)).alias("sales"), F.sum(F.col("amount") * F.col("quantity")).alias("revenue"))
    )
"""


@dataclass(frozen=True, slots=True)
class Shop:
    """A project folder and its tables `sales` and `revenue`.

    Iceberg tables are those of the namespace, in a catalog called `lake`. Delta tables lie in folders of the project.
    """

    root: Path
    namespace: str
    spark: SparkSession
    format: TableFormat = TableFormat.ICEBERG

    @classmethod
    def create(
        cls,
        root: Path,
        spark: SparkSession,
        namespace: str,
        lake: Path,
        table_format: TableFormat = TableFormat.ICEBERG,
        **pipeline: Any,
    ) -> Shop:
        """Write the project and fill both tables: the input right, the output as the buggy version 1 computed it."""
        shop = cls(root, namespace, spark, table_format)
        shop.write(lake, **pipeline)
        iceberg = table_format is TableFormat.ICEBERG
        if iceberg:
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
        spark.sql(
            f"CREATE TABLE {shop.sales} (id BIGINT, shop STRING, sold_at TIMESTAMP, amount DECIMAL(10,2), quantity INT)"
            f" USING {table_format} {'PARTITIONED BY (days(sold_at))' if iceberg else ''}"
        )
        spark.sql(
            f"CREATE TABLE {shop.revenue} (day DATE, shop STRING, sales BIGINT, revenue DECIMAL(30,2))"
            f" USING {table_format} PARTITIONED BY (day)"
        )
        spark.sql(
            f"""INSERT INTO {shop.sales}
            SELECT id, concat('S', id % {SHOPS}),
                   timestampadd(MINUTE, CAST(id DIV {DAYS} AS INT), timestampadd(DAY, CAST(id % {DAYS} AS INT),
                   TIMESTAMP'2026-01-01 00:00:00Z')),
                   CAST(1 + id % 7 AS DECIMAL(10,2)), CAST(1 + id % 3 AS INT)
            FROM range({DAYS * SALES_PER_DAY})"""
        )
        spark.sql(
            f"""INSERT INTO {shop.revenue}
            SELECT to_date(sold_at), shop, count(*), CAST(sum(amount) AS DECIMAL(30,2))
            FROM {shop.sales} GROUP BY 1, 2"""
        )
        return shop

    def write(self, lake: Path, **pipeline: Any) -> None:
        """The project's files, without any table."""
        (self.root / "pipelines").mkdir(parents=True, exist_ok=True)
        (self.root / "pipelines" / "revenue.py").write_text(_TRANSFORM)
        self.configure(lake, **pipeline)

    def configure(self, lake: Path, *, live: str = "fail", chunks_per_job: int = 3, undo_window: str = "7d") -> None:
        """(Re)write backcast.yaml."""
        (self.root / "backcast.yaml").write_text(
            dedent(
                f"""\
                name: shop
                store: .backcast/store.db
                spark: {{master: "local[2]"}}
                catalogs:
                  lake: {{type: jdbc, uri: "jdbc:sqlite:{lake}/catalog.db", warehouse: "{lake}/warehouse"}}
                datasets:
                  sales: {{{self._place("sales")}, time: {{column: sold_at, kind: timestamp}}, grain: day}}
                  revenue:
                    {self._place("revenue")}
                    time: {{column: day, kind: date}}
                    grain: day
                    key: [day, shop]
                pipelines:
                  revenue:
                    transform: pipelines.revenue:revenue
                    version: 2.0.0
                    inputs: {{sales: sales}}
                    output: revenue
                    chunks_per_job: {chunks_per_job}
                    publish: {{mode: replace, live: {live}, undo_window: {undo_window}}}
                """
            )
        )

    @property
    def sales(self) -> str:
        return self._table("sales")

    @property
    def revenue(self) -> str:
        return self._table("revenue")

    def _table(self, name: str) -> str:
        return f"{self.namespace}.{name}" if self.format is TableFormat.ICEBERG else f"delta.`{self.root}/lake/{name}`"

    def _place(self, name: str) -> str:
        """The table in backcast.yaml."""
        return f"table: {self._table(name)}" if self.format is TableFormat.ICEBERG else f"path: lake/{name}"

    def open(self) -> ControlPlane:
        """A control plane with no memory of any other."""
        return ControlPlane(Wiring(load_project(self.root)))

    def request(self, start: str = "2026-01-03", end: str = "2026-01-07") -> Request:
        reason = "revenue forgot the quantity"
        return Request(pipeline="revenue", start=start, end=end, reason=reason, requested_by="tests")

    def rows(self, version: str | None = None) -> Counter[tuple[object, ...]]:
        """Every row of the output as a multiset, now or at a version."""
        at = f" VERSION AS OF {version}" if version else ""
        return Counter(tuple(row) for row in self.spark.sql(f"SELECT * FROM {self.revenue}{at}").collect())

    def expected(self, start: str = "2026-01-03", end: str = "2026-01-07") -> Counter[tuple[object, ...]]:
        """What the output must be once the window is restated: computed by hand-written SQL."""
        new = self.spark.sql(
            f"""SELECT to_date(sold_at), shop, count(*), CAST(sum(amount * quantity) AS DECIMAL(30,2)) FROM {self.sales}
            WHERE to_date(sold_at) >= '{start}' AND to_date(sold_at) < '{end}' GROUP BY 1, 2
            UNION ALL SELECT * FROM {self.revenue} WHERE day < '{start}' OR day >= '{end}'"""
        )
        return Counter(tuple(row) for row in new.collect())

    def live(self, day: str, shop: str = "LIVE", revenue: str = "1.00") -> tuple[object, ...]:
        """Append one row as the live writer would; the row as `rows` would show it."""
        self.spark.sql(f"INSERT INTO {self.revenue} VALUES (DATE'{day}', '{shop}', 1, {revenue})")
        return tuple(self.spark.sql(f"SELECT DATE'{day}', '{shop}', 1L, CAST({revenue} AS DECIMAL(30,2))").collect()[0])

    def refs(self) -> set[str]:
        """What a run left in the output: branches and tags, or folders of stages; and `main`."""
        if self.format is TableFormat.DELTA:
            folder = self.root / "lake" / "revenue" / "_backcast"
            return {"main"} | ({each.name for each in folder.iterdir()} if folder.exists() else set())
        return {row[0] for row in self.spark.sql(f"SELECT name FROM {self.revenue}.refs").collect()}
