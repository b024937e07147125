"""A shop of its own for every test, or orders that come from a topic."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.model.pipeline import TableFormat
from backcast.testing.kafka import KafkaBroker
from backcast.testing.orders import Orders
from backcast.testing.shop import Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession, namespace: str, lake_root: Path, request: pytest.FixtureRequest) -> Shop:
    """On Iceberg, unless the test or its module is parametrised with a format."""
    table_format = getattr(request, "param", TableFormat.ICEBERG)
    return Shop.create(tmp_path, spark, namespace, lake_root, table_format)


@pytest.fixture
def new_orders(
    tmp_path: Path, spark: SparkSession, broker: KafkaBroker, namespace: str, lake_root: Path
) -> Callable[..., Orders]:
    """Makes the project and its topic: `new_orders(partitions=64, table_format=..., cleanup_policy="compact")`."""
    return partial(Orders.create, tmp_path, spark, broker, namespace, lake_root)
