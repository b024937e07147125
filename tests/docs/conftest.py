"""An empty folder in which the pages are typed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.replay import Shell

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.spark.settings import SessionSettings


@pytest.fixture
def shell(
    tmp_path: Path,
    spark: SparkSession,
    spark_settings: SessionSettings,
    lake_root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Shell]:
    """An empty folder. The project's catalog is that of the shared session, so that no second Spark has to start."""
    monkeypatch.setenv("BACKCAST__CATALOGS__LAKE__URI", f"jdbc:sqlite:{lake_root}/catalog.db")
    monkeypatch.setenv("BACKCAST__CATALOGS__LAKE__WAREHOUSE", spark_settings.catalogs["lake"]["warehouse"])
    monkeypatch.setenv("LOGNAME", "ana")
    monkeypatch.setenv("COLUMNS", "80")
    for table in ("daily", "events", "shops"):
        spark.sql(f"DROP TABLE IF EXISTS lake.shop.{table} PURGE")
    shell = Shell(tmp_path)
    yield shell
    shell.close()
