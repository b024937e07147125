"""What tests with Spark share beyond the session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.targets.delta.target import DeltaTarget
from tests.spark.checkpoint_kit import Lab, new_lab
from tests.spark.delta_kit import COLUMNS, ROWS, Create

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.testing.kafka import KafkaBroker


@pytest.fixture(scope="session")
def lab(spark: SparkSession, broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Makes real checkpoints of each kind once; tests copy them."""
    return new_lab(spark, broker, tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture
def create(spark: SparkSession, tmp_path: Path) -> Create:
    """A table of three days with four rows each, in a folder whose name must be encoded."""

    def make(
        columns: str = COLUMNS, layout: str = "PARTITIONED BY (day)", properties: str = "", rows: str = ROWS
    ) -> DeltaTarget:
        name = f"delta.`{tmp_path}/a b%/t=1`"
        tail = f"TBLPROPERTIES ({properties})" if properties else ""
        spark.sql(f"CREATE TABLE {name} ({columns}) USING delta {layout} {tail}")
        spark.sql(f"INSERT INTO {name} {rows}")
        return DeltaTarget(spark, name)

    return make
