"""The project behind the runbooks about streams: orders in a topic, a stream that counts them, a nightly job."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.cli import detached
from backcast.testing.kafka_records import Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.control import ControlPlane
    from backcast.testing.kafka import KafkaBroker

TOPIC = "shop.orders"
BY_HOUR, BY_DAY, SALES = "lake.shop.orders_by_hour", "lake.shop.orders_by_day", "lake.shop.sales"
ARCHIVE = "lake.shop.orders_archive"
TABLES = (BY_HOUR, BY_DAY, SALES, ARCHIVE)
_VALUE = "id BIGINT, shop STRING, at TIMESTAMP, amount DECIMAL(10,2)"
_CONFIG = f"""\
name: shop
catalogs:
  lake: {{type: jdbc, uri: "jdbc:sqlite:lake/catalog.db", warehouse: lake/warehouse}}
spark: {{master: "local[2]"}}
sources:
  orders:
    type: kafka
    servers: "SERVERS"
    topic: {TOPIC}
    value: {{format: json, columns: "{_VALUE}"}}
    time: {{column: at}}
    slack: {{after: 12h}}
    archive: {{table: {ARCHIVE}}}
datasets:
  by_hour: {{table: {BY_HOUR}, time: {{column: hour}}, grain: hour, key: [hour, shop]}}
  by_day: {{table: {BY_DAY}, time: {{column: day, kind: date}}, key: [day, shop], calendar: weekdays}}
  sales: {{table: {SALES}, time: {{column: day, kind: date}}, key: [id], calendar: weekdays}}
pipelines:
  by_hour: {{sql: by_hour.sql, version: 1.0.0, inputs: {{orders: orders}}, output: by_hour}}
  by_day: {{sql: by_day.sql, version: 1.0.0, inputs: {{orders: orders}}, output: by_day}}
  sales: {{sql: sales.sql, version: 1.0.0, inputs: {{orders: orders}}, output: sales}}
  sales_live:
    {{sql: sales.sql, version: 1.0.0, inputs: {{orders: orders}}, output: sales, publish: {{mode: append}}}}
streams:
  live: {{pipeline: by_hour, checkpoint: checkpoints/live, watermark: {{column: at, delay: 10m}}, external: true}}
  sales-live: {{pipeline: sales_live, checkpoint: checkpoints/sales-live, starting: '{{"{TOPIC}": {{"0": 100}}}}'}}
"""
_SQL = (
    "SELECT {time}, shop, count(*) AS orders, CAST(sum(amount) AS DECIMAL(20,2)) AS amount FROM orders GROUP BY 1, 2\n"
)
_SALES = "SELECT id, shop, at, {amount}amount, to_date(at) AS day FROM orders\n"
_WITH_TAX = "CAST(amount * 1.19 AS DECIMAL(10,2)) AS "
_MONDAY = datetime(2026, 1, 5, tzinfo=UTC)


def build(root: Path, spark: SparkSession, broker: KafkaBroker) -> None:
    """A week of orders, two of which came seven hours late; and a nightly job that missed two nights."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "backcast.yaml").write_text(_CONFIG.replace("SERVERS", broker.servers))
    (root / "by_hour.sql").write_text(_SQL.format(time="date_trunc('HOUR', at) AS hour"))
    (root / "by_day.sql").write_text(_SQL.format(time="to_date(at) AS day"))
    (root / "sales.sql").write_text(_SALES.format(amount=_WITH_TAX))
    broker.create_topic(TOPIC, 1)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    columns = "shop STRING, orders BIGINT, amount DECIMAL(20,2)"
    spark.sql(f"CREATE TABLE {BY_HOUR} (hour TIMESTAMP, {columns}) USING iceberg PARTITIONED BY (hours(hour))")
    spark.sql(f"CREATE TABLE {BY_DAY} (day DATE, {columns}) USING iceberg PARTITIONED BY (day)")
    sales = "id BIGINT, shop STRING, at TIMESTAMP, amount DECIMAL(10,2), day DATE"
    spark.sql(f"CREATE TABLE {SALES} ({sales}) USING iceberg PARTITIONED BY (day)")
    friday, monday = _MONDAY + timedelta(days=4), _MONDAY + timedelta(days=7)
    broker.produce(TOPIC, list(_orders(0, [_MONDAY + timedelta(days=day) for day in range(5)], range(9, 18))))
    _stream(root, spark, broker)
    late = [friday + timedelta(hours=10, minutes=minutes) for minutes in (20, 40)]
    broker.produce(TOPIC, [_record(900 + number, at, at + timedelta(hours=7)) for number, at in enumerate(late)])
    broker.produce(TOPIC, list(_orders(500, [monday], range(9, 13))))
    _stream(root, spark, broker)
    nights = "'2026-01-05', '2026-01-06', '2026-01-08', '2026-01-12'"
    spark.sql(
        f"INSERT INTO {BY_DAY} SELECT to_date(hour), shop, sum(orders), CAST(sum(amount) AS DECIMAL(20,2)) "
        f"FROM (SELECT * FROM {BY_HOUR} UNION ALL SELECT TIMESTAMP'2026-01-12 12:00:00Z', 'S1', 1, 2.50) "
        f"WHERE to_date(hour) IN ({nights}) GROUP BY 1, 2"
    )


def mend(root: Path) -> None:
    """Version 1.1.0 of the sales: amounts as the tills send them."""
    (root / "sales.sql").write_text(_SALES.format(amount=""))
    config = (root / "backcast.yaml").read_text()
    (root / "backcast.yaml").write_text(
        config.replace("sql: sales.sql, version: 1.0.0", "sql: sales.sql, version: 1.1.0")
    )


def overtake(control: ControlPlane, broker: KafkaBroker) -> None:
    """The stream of the sales has read Tuesday morning and was down since; of the afternoon retention took the most.

    The archive was filled in between.
    """
    tuesday = _MONDAY + timedelta(days=8)
    broker.produce(TOPIC, list(_orders(600, [tuesday], range(9, 12))))
    control.stream_start("sales-live", once=True)
    broker.produce(TOPIC, list(_orders(610, [tuesday], range(13, 18))))
    control.archive("orders")
    broker.delete_records(TOPIC, {0: 114})


def end(root: Path, control: ControlPlane) -> None:
    """Nothing of the stream is left running."""
    deadline = time.monotonic() + 120
    while detached.is_working(root, detached.stream_work("sales-live")) and time.monotonic() < deadline:
        control.stream_stop("sales-live", force=True)
        time.sleep(0.2)


def _orders(first: int, days: list[datetime], hours: range) -> Iterator[Record]:
    number = first
    for day in days:
        for hour in hours:
            for minutes in (5, 35):
                at = day + timedelta(hours=hour, minutes=minutes)
                yield _record(number, at, at)
                number += 1


def _record(number: int, at: datetime, written: datetime) -> Record:
    value = {"id": number, "shop": f"S{number % 2}", "at": at.isoformat(), "amount": "2.50"}
    return Record(json.dumps(value), str(number), int(written.timestamp() * 1000), 0)


def _stream(root: Path, spark: SparkSession, broker: KafkaBroker) -> None:
    """Somebody else's job: whatever is in the topic by now, counted by hour, ten minutes of patience."""
    from pyspark.sql import functions as F

    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    stream = session.readStream.format("kafka").option("kafka.bootstrap.servers", broker.servers)
    raw = stream.option("subscribe", TOPIC).option("startingOffsets", "earliest").load()
    rows = raw.selectExpr(f"from_json(CAST(value AS STRING), '{_VALUE}') AS v").select("v.*")
    counted = rows.withWatermark("at", "10 minutes").groupBy(F.window("at", "1 hour").alias("w"), "shop")
    amount = F.sum("amount").cast("decimal(20,2)").alias("amount")
    result = counted.agg(F.count("*").alias("orders"), amount).selectExpr("w.start AS hour", "shop", "orders", "amount")
    writer = result.writeStream.option("checkpointLocation", str(root / "checkpoints" / "live"))
    assert writer.trigger(availableNow=True).toTable(BY_HOUR).awaitTermination(120)
