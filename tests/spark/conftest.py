"""What tests with Spark share beyond the session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.spark.checkpoint_kit import Lab, new_lab

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.testing.kafka import KafkaBroker


@pytest.fixture(scope="session")
def lab(spark: SparkSession, broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Makes real checkpoints of each kind once; tests copy them."""
    return new_lab(spark, broker, tmp_path_factory.mktemp("checkpoints"))
