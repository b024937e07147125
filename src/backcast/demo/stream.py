"""The world around the topic: tills that send orders all along, and a stream that writes them into the table."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from backcast.demo.live import Background
from backcast.demo.orders import SHOPS, Order
from backcast.demo.topic import COLUMNS, ORDERS, TOPIC, OrdersTopic
from backcast.testing.kafka_records import write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


class Tills(Background):
    """Send an order of each shop, over and over. Know every order that the broker has confirmed."""

    words = "tills"

    def __init__(self, orders: OrdersTopic, first: int) -> None:
        from confluent_kafka import Producer

        super().__init__(pause=0.5)
        # Without idempotence an order that is sent again could be in the topic twice.
        settings = {"bootstrap.servers": orders.broker.servers, "enable.idempotence": True, "log_level": 0}
        self._producer = Producer(settings)
        self._next = first
        self.sent: list[Order] = []

    def step(self) -> None:
        now = datetime.now(UTC).replace(microsecond=0)
        batch = [Order.of(self._next + number, now) for number in range(len(SHOPS))]
        write(self._producer, TOPIC, (each.record() for each in batch))
        self._next += len(batch)
        self.sent.extend(batch)


class Stream:
    """Structured Streaming from the topic into the table, with the transform that is deployed when it starts.

    A record that is no JSON it leaves out, as such streams do, and says nothing.
    """

    def __init__(self, orders: OrdersTopic) -> None:
        self._orders = orders
        self._query: StreamingQuery | None = None

    def start(self) -> None:
        """Go on where the checkpoint says, or from the beginning of the topic."""
        rows = self._transformed()
        checkpoint = str(self._orders.root / "checkpoint")
        writer = rows.writeStream.option("checkpointLocation", checkpoint).trigger(processingTime="1 second")
        self._query = writer.toTable(ORDERS)

    def catch_up(self) -> None:
        """Wait until every record that is in the topic now has been written, or the stream has failed."""
        from pyspark.errors import StreamingQueryException

        if self._query is not None:
            # `failure` tells.
            with suppress(StreamingQueryException):
                self._query.processAllAvailable()

    def stop(self) -> None:
        if self._query is not None:
            self._query.stop()

    @property
    def batches(self) -> int:
        """How many batches it has begun since the checkpoint is there."""
        progress = None if self._query is None else self._query.lastProgress
        return 0 if progress is None else int(progress["batchId"]) + 1

    @property
    def failure(self) -> str:
        """What ended it before it was told to stop; empty while all is well."""
        if self._query is None or (self._query.isActive and self._query.exception() is None):
            return ""
        return str(self._query.exception() or "it ended by itself")

    def _transformed(self) -> DataFrame:
        spark = self._orders.spark.newSession()
        records = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self._orders.broker.servers)
            .option("subscribe", TOPIC)
            .option("startingOffsets", "earliest")
            .load()
        )
        decoded = records.selectExpr(f"from_json(CAST(value AS STRING), '{COLUMNS}') AS value").select("value.*")
        decoded.where("id IS NOT NULL").createOrReplaceTempView("orders")
        return spark.sql(self._orders.model.read_text())
