"""Delta keeps the contract of targets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.model.pipeline import TableFormat
from backcast.testing.shop import Shop
from backcast.testing.target_contract import TargetContract
from backcast.testing.target_writers import WriterContract
from tests.contract.delta_labs import OutsideDeltaLab, OutsideDeltaTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TestDeltaTarget(TargetContract):
    """Every sentence of the contract, on tables by paths that need care."""

    @pytest.fixture
    def lab(self, spark: SparkSession, tmp_path: Path, lake_root: Path) -> OutsideDeltaLab:
        return OutsideDeltaLab(spark, tmp_path / "a b%20=c", templates=lake_root / "templates")


class TestDeltaBesideWriters(WriterContract):
    """Every writer, in scope and out of it, before publish and before undo."""

    @pytest.fixture
    def shop(self, tmp_path: Path, spark: SparkSession, namespace: str, lake_root: Path) -> Shop:
        return Shop.create(tmp_path, spark, namespace, lake_root, TableFormat.DELTA)

    @pytest.fixture
    def table(self, shop: Shop) -> OutsideDeltaTable:
        return OutsideDeltaTable(shop.spark, shop.revenue)
