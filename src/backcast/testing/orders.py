"""Orders that flow through a topic: a project that replays them into a table, and the topic's records.

Used by our own tests and good for yours: `Orders.create(...)` gives a project in a folder, its topic and its tables.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

from backcast.control import ControlPlane
from backcast.model.pipeline import TableFormat
from backcast.model.request import Request
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.testing.kafka import KafkaBroker
from backcast.testing.kafka_records import Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_COLUMNS = "id BIGINT, shop STRING, at TIMESTAMP, amount DECIMAL(10,2)"
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Order:
    """One order, and when its record was written if not at once."""

    id: int
    at: datetime
    amount: str = "1.00"
    shop: str = "S1"
    late: timedelta = timedelta()

    def record(self, partition: int | None = None) -> Record:
        value = {"id": self.id, "shop": self.shop, "at": self.at.isoformat(), "amount": self.amount}
        written = int((self.at + self.late).timestamp() * 1000)
        return Record(json.dumps(value).encode(), key=str(self.id).encode(), timestamp=written, partition=partition)


def spread(days: int, a_day: int) -> Iterator[Order]:
    """So many orders a day, evenly over each."""
    for number in range(days * a_day):
        at = FIRST + timedelta(days=number // a_day, seconds=86_400 * (number % a_day) / a_day)
        yield Order(number, at, f"{1 + number % 7}.50", f"S{number % 3}")


@dataclass(frozen=True, slots=True)
class Orders:
    """A project folder, its topic and its table `orders`, partitioned by day.

    An Iceberg table is one of the namespace, in a catalog called `lake`. A Delta table lies in a folder of the project.
    """

    root: Path
    spark: SparkSession
    broker: KafkaBroker
    topic: str
    table: str
    lake: Path
    options: dict[str, str] = field(default_factory=dict)
    format: TableFormat = TableFormat.ICEBERG

    @classmethod
    def create(
        cls,
        root: Path,
        spark: SparkSession,
        broker: KafkaBroker,
        namespace: str,
        lake: Path,
        *,
        partitions: int = 3,
        source: str = "",
        table_format: TableFormat = TableFormat.ICEBERG,
        **config: str | int,
    ) -> Orders:
        """`source` is further YAML of the source, each key on a line of its own; `config` the topic's."""
        topic = f"orders-{next(_numbers)}"
        broker.create_topic(topic, partitions, **config)
        delta = table_format is TableFormat.DELTA
        table = f"delta.`{root}/lake/orders`" if delta else f"{namespace}.orders"
        made = cls(root, spark, broker, topic, table, lake, format=table_format)
        made.configure(source=source)
        made.create_table()
        return made

    def create_table(self, suffix: str = "") -> None:
        """The table, or another one like it."""
        table = f"{self.table.removesuffix('`')}{suffix}`" if self.table.endswith("`") else f"{self.table}{suffix}"
        self.spark.sql(f"CREATE TABLE {table} ({_COLUMNS}, day DATE) USING {self.format} PARTITIONED BY (day)")

    def configure(self, *, source: str = "", pipeline: str = "", stream: str = "") -> None:
        """(Re)write the project's files. `stream` is further YAML of the stream `live`."""
        (self.root / "models").mkdir(parents=True, exist_ok=True)
        (self.root / "models" / "orders.sql").write_text(
            "SELECT id, shop, at, amount, to_date(at) AS day FROM orders\n"
        )
        text = dedent(
            f"""\
            name: orders
            store: .backcast/store.db
            spark: {{master: "local[2]"}}
            catalogs:
              lake: {{type: jdbc, uri: "jdbc:sqlite:{self.lake}/catalog.db", warehouse: "{self.lake}/warehouse"}}
            sources:
              orders:
                type: kafka
                servers: "{self.broker.servers}"
                topic: {self.topic}
                value: {{format: json, columns: "{_COLUMNS}"}}
                time: {{column: at, kind: timestamp}}
            {{source}}
            datasets:
              orders_by_day:
                {self._place}
                time: {{column: day, kind: date}}
                grain: day
                key: [id]
                version: at
            pipelines:
              orders:
                sql: models/orders.sql
                version: 1.0.0
                inputs: {{orders: orders}}
                output: orders_by_day
            {{pipeline}}
            streams:
              live:
                pipeline: orders
                checkpoint: .checkpoints/live
                trigger: 1s
            {{stream}}
            """
        )
        indented = {"source": _indented(source), "pipeline": _indented(pipeline), "stream": _indented(stream)}
        for name, lines in indented.items():
            text = text.replace(f"{{{name}}}\n", lines)
        (self.root / "backcast.yaml").write_text(text)

    @property
    def _place(self) -> str:
        """The table in backcast.yaml."""
        return "path: lake/orders" if self.format is TableFormat.DELTA else f"table: {self.table}"

    def send(self, orders: Iterable[Order], partition: int | None = None) -> None:
        """In the order in which they claim to have been written."""
        in_order = sorted(orders, key=lambda each: each.at + each.late)
        self.broker.produce(self.topic, [each.record(partition) for each in in_order])

    def send_raw(self, *values: bytes | None, at: datetime = FIRST, partition: int = 0) -> None:
        """Records as they are; None is a tombstone."""
        written = int(at.timestamp() * 1000)
        records = [Record(value, key=b"raw", timestamp=written, partition=partition) for value in values]
        self.broker.produce(self.topic, records)

    def open(self) -> ControlPlane:
        """A control plane with no memory of any other."""
        return ControlPlane(Wiring(load_project(self.root)))

    def request(self, start: str = "2026-01-02", end: str = "2026-01-04") -> Request:
        return Request(pipeline="orders", start=start, end=end, reason="replay", requested_by="tests")

    def rows(self) -> Counter[tuple[object, ...]]:
        """Every row of the table as (id, day, amount)."""
        found = self.spark.sql(f"SELECT id, CAST(day AS STRING), CAST(amount AS STRING) FROM {self.table}").collect()
        return Counter(tuple(row) for row in found)


def rows_of(orders: Iterable[Order], start: str, end: str) -> Counter[tuple[object, ...]]:
    """What a replay of the window must leave of these orders."""
    days = ((each, f"{each.at:%Y-%m-%d}") for each in orders)
    return Counter((each.id, day, each.amount) for each, day in days if start <= day < end)


def _indented(lines: str) -> str:
    return "".join(f"    {line}\n" for line in lines.splitlines())
