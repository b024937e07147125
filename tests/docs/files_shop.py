"""What the runbook about files or a database finds: orders in folders by date, and in a database."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.testing.postgres import PostgresServer

LANDING, SALES = "lake.shop.landing", "lake.shop.sales"
_MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
_A_DAY = 4
Order = tuple[int, str, datetime, Decimal]


def build(root: Path, spark: SparkSession, postgres: PostgresServer) -> str:
    """Files of three days, an order that comes late, and four days in a database, whose address for JDBC it gives."""
    _write_files(root / "files")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    for table, columns, part in ((LANDING, "at TIMESTAMP", "days(at)"), (SALES, "day DATE", "day")):
        spark.sql(f"DROP TABLE IF EXISTS {table} PURGE")
        every = f"id BIGINT, shop STRING, amount DECIMAL(10,2), {columns}"
        spark.sql(f"CREATE TABLE {table} ({every}) USING iceberg PARTITIONED BY ({part})")
    database = postgres.database()
    postgres.execute("CREATE TABLE orders (id bigint, shop text, at timestamptz, amount numeric(10,2))", database)
    rows = ", ".join(f"({each[0]}, '{each[1]}', '{each[2].isoformat()}', {each[3]})" for each in _week(range(2, 6)))
    postgres.execute(f"INSERT INTO orders VALUES {rows}", database)
    return f"{postgres.jdbc_url(database)}?user={postgres.user}&password={quote(postgres.password, safe='')}"


def _write_files(files: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    monday, tuesday, wednesday = (files / f"2026/01/{_MONDAY.day + day:02}" for day in range(3))
    for folder in (monday, tuesday, wednesday, files / "late"):
        folder.mkdir(parents=True)
    (monday / "orders.json").write_text(_lines(_week([0])))
    (files / "late" / "orders.json").write_text(_lines([(900, "S1", _MONDAY + timedelta(days=1), Decimal("9.00"))]))
    with (tuesday / "orders.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "shop", "at", "amount"])
        lines.writerows((number, shop, at.isoformat(), amount) for number, shop, at, amount in _week([1]))
    names = ("id", "shop", "at", "amount")
    pq.write_table(pa.table(dict(zip(names, zip(*_week([2]), strict=True), strict=True))), wednesday / "orders.parquet")


def _lines(orders: Iterator[Order] | list[Order]) -> str:
    rows = ({"id": each[0], "shop": each[1], "at": each[2].isoformat(), "amount": str(each[3])} for each in orders)
    return "".join(json.dumps(row) + "\n" for row in rows)


def _week(days: range | list[int]) -> Iterator[Order]:
    """Four orders of each of these days, from Monday on: the first and the last second of the day among them."""
    for day in days:
        for number in range(_A_DAY):
            at = _MONDAY + timedelta(days=day, seconds=86_399 * number // (_A_DAY - 1))
            yield 1 + _A_DAY * day + number, f"S{number % 2}", at, Decimal("2.50")
