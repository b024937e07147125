"""What processes of a project with a topic go through, once: `python -m tests.topic_story FOLDER FORMAT`."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from backcast.control import ControlPlane
from backcast.model.pipeline import TableFormat
from backcast.testing.kafka import kafka_broker
from backcast.testing.orders import Orders, spread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(root: Path, table_format: TableFormat) -> None:
    lake, project = root / "lake", root / "project"
    lake.mkdir()
    table = f"delta.`{project}/lake/orders`" if table_format is TableFormat.DELTA else "lake.shop.orders"
    with kafka_broker() as broker:
        broker.create_topic("orders", 1)
        nowhere = cast("SparkSession", None)
        orders = Orders(project, nowhere, broker, "orders", table, lake, format=table_format)
        orders.configure()
        orders.send(spread(2, 10))
        with closing(orders.open().world) as world:
            spark, control = world.spark(), ControlPlane(world)
            spark.sql("CREATE NAMESPACE lake.shop")
            replace(orders, spark=spark).create_table()
            control.stream_start("live", once=True)
            control.undo(control.backfill(orders.request("2026-01-01", "2026-01-03")).run_id)


if __name__ == "__main__":
    main(Path(sys.argv[1]), TableFormat(sys.argv[2]))
