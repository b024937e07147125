"""A shop with few rows for every test, made without Spark."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.model.pipeline import TableFormat
from backcast.testing.shop import Shop
from tests.crash.lake import Lake
from tests.crash.lakes import filled_lake
from tests.crash.life import Life
from tests.crash.process import RealLife

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_numbers = itertools.count(1)


@pytest.fixture
def new_life(
    tmp_path: Path, spark: SparkSession, lake_root: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Life]]:
    """Makes a life in the shared session: `new_life(live="fail")`. On Iceberg, unless parametrised with a format."""
    table_format = getattr(request, "param", TableFormat.ICEBERG)
    lakes: list[Lake] = []

    def make(*, live: str = "keep", undo_window: str = "7d") -> Life:
        namespace = f"crash{next(_numbers)}"
        lake = filled_lake(table_format, tmp_path, lake_root, namespace)
        lakes.append(lake)
        shop = Shop(tmp_path, f"lake.{namespace}", spark, table_format)
        shop.write(lake_root, live=live, chunks_per_job=1, undo_window=undo_window)
        return Life(shop, lake)

    yield make
    for lake in lakes:
        lake.close()


@pytest.fixture
def real_life(
    tmp_path: Path, spark: SparkSession, lake_root: Path, request: pytest.FixtureRequest
) -> Iterator[RealLife]:
    """A life whose killed commands are processes; what leads up to a kill and comes after it may be done here.

    On Iceberg, unless parametrised with a format. Its undo window ends at once, so that gc may act.
    """
    table_format = getattr(request, "param", TableFormat.ICEBERG)
    namespace = f"real{next(_numbers)}"
    lake = filled_lake(table_format, tmp_path, lake_root, namespace)
    shop = Shop(tmp_path, f"lake.{namespace}", spark, table_format)
    shop.write(lake_root, live="keep", chunks_per_job=1, undo_window="0s")
    life = RealLife(shop, lake)
    yield life
    life.close()
    lake.close()
