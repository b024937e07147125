"""The second project: a topic of orders on a real broker, the table that a stream makes of it, and one transform for
both the stream and a replay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.demo.lake import Lake, Row, rows
from backcast.demo.orders import COUNTERS, GROWN, SHOPS
from backcast.testing.kafka import KafkaBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Groups = Mapping[str, Mapping[int, int]]
"""Consumer groups: where each stands, by partition."""
TOPIC = "orders"
ORDERS = "lake.shop.orders"
STREAM = "orders-live"
DATASET = "orders_by_day"
WRONG_LINE = "ON tills.shop = orders.shop AND tills.since <= orders.at"
RIGHT_LINE = "ON tills.shop = orders.shop AND tills.till = orders.till"
_TILLS = "lake.shop.tills"
_COLUMNS = "id BIGINT, shop STRING, till INT, at TIMESTAMP, amount DECIMAL(10,2)"
_GROUP = "billing"
_PARTITIONS = 3
_WEEK = timedelta(days=7)
_SQL = """\
SELECT id, orders.shop, tills.counter, at, amount, to_date(at) AS day
FROM orders JOIN tills
  {join}
"""
_PROJECT = """\
name: orders
store: .backcast/store.db
spark: {{master: "local[*]", driver_memory: 1g}}

catalogs:
  lake: {{type: jdbc, uri: "jdbc:sqlite:{lake}/catalog.db", warehouse: "{lake}/warehouse"}}

sources:
  orders:
    type: kafka
    servers: "{servers}"
    topic: {topic}
    value: {{format: json, columns: "{columns}"}}
    time: {{column: at, kind: timestamp}}
    slack: {{before: 5m, after: 30m}}
    quarantine: {{table: lake.shop.bad_orders, most: 10}}

datasets:
  tills: {{table: {tills}}}
  {dataset}:
    table: {table}
    time: {{column: day, kind: date}}
    key: [id]

pipelines:
  orders:
    sql: models/orders.sql
    version: {version}
    inputs: {{orders: orders, tills: {{dataset: tills, window: all}}}}
    output: {dataset}
    publish: {{mode: replace, live: keep, undo_window: 7d}}

streams:
  {stream}: {{pipeline: orders, checkpoint: checkpoint, trigger: 1s}}
"""


@dataclass(frozen=True, slots=True)
class OrdersTopic:
    """A project folder beside the first one and in the same lake, its topic and its table."""

    root: Path
    lake: Lake
    broker: KafkaBroker

    @classmethod
    def create(cls, lake: Lake, broker: KafkaBroker, grown: date) -> OrdersTopic:
        """The project at version 1.0.0, an empty topic that keeps a week, an empty table; a second till that day."""
        made = cls(lake.root.parent / "orders", lake, broker)
        broker.create_topic(TOPIC, _PARTITIONS, retention_ms=int(_WEEK.total_seconds() * 1000))
        made.deploy("1.0.0", WRONG_LINE)
        columns = "id BIGINT, shop STRING, counter STRING, at TIMESTAMP, amount DECIMAL(10,2), day DATE"
        lake.spark.sql(f"CREATE TABLE {ORDERS} ({columns}) USING iceberg PARTITIONED BY (day)")
        first = [f"('{shop}', 1, '{COUNTERS[1]}', DATE'2020-01-01')" for shop in SHOPS]
        tills = ", ".join([*first, f"('{GROWN}', 2, '{COUNTERS[2]}', DATE'{grown}')"])
        lake.spark.sql(f"CREATE TABLE {_TILLS} (shop STRING, till INT, counter STRING, since DATE) USING iceberg")
        lake.spark.sql(f"INSERT INTO {_TILLS} VALUES {tills}")  # noqa: S608 - our own values
        return made

    @property
    def spark(self) -> SparkSession:
        return self.lake.spark

    @property
    def model(self) -> Path:
        """What turns orders into rows, for the stream and for a replay."""
        return self.root / "models" / "orders.sql"

    def deploy(self, version: str, join: str) -> None:
        """Write the project's files with this version of the transform."""
        self.model.parent.mkdir(parents=True, exist_ok=True)
        self.model.write_text(_SQL.format(join=join))
        text = _PROJECT.format(
            lake=self.lake.root / ".lake",
            servers=self.broker.servers,
            topic=TOPIC,
            columns=_COLUMNS,
            tills=_TILLS,
            dataset=DATASET,
            table=ORDERS,
            stream=STREAM,
            version=version,
        )
        (self.root / "backcast.yaml").write_text(text)

    def rows(self, where: str = "true") -> Counter[Row]:
        """Rows of the table as a reader sees them, like those of `Order.row`."""
        return rows(self.spark, f"SELECT id, shop, counter, unix_millis(at), amount, day FROM {ORDERS} WHERE {where}")  # noqa: S608 - our own values

    def revenue(self, days: tuple[date, ...]) -> list[str]:
        """Days down, shops across."""
        query = f"SELECT day, shop, sum(amount) FROM {ORDERS} GROUP BY day, shop"  # noqa: S608 - our own values
        found = {(row[0], row[1]): row[2] for row in self.spark.sql(query).collect()}
        shops = sorted({shop for _, shop in found})
        lines = [f"{day}" + "".join(f"{found.get((day, shop), 0):>14,.2f}" for shop in shops) for day in days]
        return [" " * 10 + "".join(f"{shop:>14}" for shop in shops), *lines]

    def bill(self) -> None:
        """Another department reads the topic too: its consumer group has read all that is there now."""
        from confluent_kafka import Consumer, TopicPartition

        ends = self.broker.end_offsets(TOPIC)
        consumer = Consumer({"bootstrap.servers": self.broker.servers, "group.id": _GROUP, "log_level": 0})
        try:
            consumer.commit(offsets=[TopicPartition(TOPIC, *each) for each in ends.items()], asynchronous=False)
        finally:
            consumer.close()

    def groups(self) -> Groups:
        """Every consumer group that the broker knows, and where it stands."""
        from confluent_kafka import ConsumerGroupTopicPartitions

        admin = self.broker.admin()
        names = [each.group_id for each in admin.list_consumer_groups().result().valid]
        asked = [admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name] for name in names]
        return {
            answer.group_id: {each.partition: each.offset for each in answer.topic_partitions}
            for answer in (each.result() for each in asked)
        }
