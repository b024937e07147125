"""A shop of its own for every test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.testing.shop import Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession, namespace: str, lake_root: Path) -> Shop:
    return Shop.create(tmp_path, spark, namespace, lake_root)
