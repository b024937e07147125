"""A shop of its own for every test."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.model.pipeline import TableFormat
from backcast.testing.shop import Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession, namespace: str, lake_root: Path, request: pytest.FixtureRequest) -> Shop:
    """On Iceberg, unless the test or its module is parametrised with a format."""
    table_format = getattr(request, "param", TableFormat.ICEBERG)
    return Shop.create(tmp_path, spark, namespace, lake_root, table_format)
