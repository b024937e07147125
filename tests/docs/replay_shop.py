"""The project behind the runbook about a full replay: a stream of ours whose transform was wrong from the start."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.project.api import open_project
from backcast.testing.kafka_records import Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.testing.kafka import KafkaBroker

TOPIC, TABLE = "shop.sales", "lake.shop.sales_by_hour"
_VALUE = "id BIGINT, shop STRING, at TIMESTAMP, net DECIMAL(10,2), tax DECIMAL(10,2)"
_CONFIG = f"""\
name: shop
catalogs:
  lake: {{type: jdbc, uri: "jdbc:sqlite:lake/catalog.db", warehouse: lake/warehouse}}
spark: {{master: "local[2]"}}
sources:
  sales:
    type: kafka
    servers: "SERVERS"
    topic: {TOPIC}
    value: {{format: json, columns: "{_VALUE}"}}
    time: {{column: at}}
datasets:
  by_hour: {{table: {TABLE}, time: {{column: hour}}, grain: hour, key: [hour, shop]}}
pipelines:
  by_hour: {{sql: by_hour.sql, version: 1.0.0, inputs: {{sales: sales}}, output: by_hour}}
streams:
  live: {{pipeline: by_hour, checkpoint: checkpoints/live, watermark: {{column: at, delay: 10m}}}}
"""
_NET = """\
SELECT window.start AS hour, shop, count(*) AS sales, CAST(sum(net) AS DECIMAL(20,2)) AS amount
FROM sales GROUP BY window(at, '1 hour'), shop
"""
_MONDAY = datetime(2026, 1, 5, 9, tzinfo=UTC)


def build(root: Path, spark: SparkSession, broker: KafkaBroker, corrected: str) -> None:
    """A day of sales that the stream has read; then the correction is deployed, and an hour more is sold."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "backcast.yaml").write_text(_CONFIG.replace("SERVERS", broker.servers))
    (root / "by_hour.sql").write_text(_NET)
    broker.create_topic(TOPIC, 2)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    columns = "hour TIMESTAMP, shop STRING, sales BIGINT, amount DECIMAL(20,2)"
    spark.sql(f"CREATE TABLE {TABLE} ({columns}) USING iceberg PARTITIONED BY (hours(hour))")
    broker.produce(TOPIC, [_sale(number) for number in range(80)])
    control = open_project(root)
    with closing(control.world):
        control.stream_start("live", once=True)
    (root / "by_hour.sql").write_text(corrected)
    broker.produce(TOPIC, [_sale(number) for number in range(80, 100)])


def _sale(number: int) -> Record:
    at = _MONDAY + timedelta(minutes=6 * number)
    value = {"id": number, "shop": f"S{number % 2}", "at": at.isoformat(), "net": "2.00", "tax": "0.50"}
    return Record(json.dumps(value), str(number), int(at.timestamp() * 1000), number % 2)
