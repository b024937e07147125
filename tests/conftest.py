"""One Spark session per test process, on a lake of its own; a namespace of its own for every test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.spark.settings import SessionSettings
    from backcast.testing.postgres import PostgresServer

# A test process shares two cores with a JVM: a slow example says nothing about the code.
settings.register_profile("backcast", deadline=None)
settings.load_profile("backcast")

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def lake_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the catalog `lake`: catalog.db and warehouse/. One for each test process."""
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def spark_settings(lake_root: Path) -> SessionSettings:
    """The settings of the shared session; open_session with them returns that session."""
    from backcast.spark.settings import SessionSettings, embedded_catalog
    from backcast.spark.versions import Package

    return SessionSettings(
        app_name="backcast-tests",
        master="local[2]",
        packages=tuple(Package),
        catalogs={"lake": embedded_catalog(lake_root)},
        driver_memory="2g",
        log_file=lake_root / "spark.log",
        conf={
            "spark.sql.shuffle.partitions": "2",
            # A test's dozen rows are read before code for them is compiled and before a plan is worth changing midway.
            # The commands that tests start, the demo and the bench run on the defaults.
            "spark.sql.adaptive.enabled": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.sql.codegen.wholeStage": "false",
            # Short jobs never earn back what the second compiler and a parallel collector cost at start. With the first
            # one alone Java takes a small code cache for granted, and spends its time on sweeping it.
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
        },
    )


@pytest.fixture(scope="session")
def spark(spark_settings: SessionSettings) -> Iterator[SparkSession]:
    """The session that all tests of this process share."""
    from backcast.spark.session import open_session

    session = open_session(spark_settings)
    yield session
    session.stop()


@pytest.fixture
def namespace(spark: SparkSession) -> str:
    """A fresh namespace `lake.<unique>`; it stays behind, the whole lake is thrown away."""
    name = f"lake.t{next(_numbers)}"
    spark.sql(f"CREATE NAMESPACE {name}")
    return name


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server that all tests of this process share; each takes a `database()` of its own."""
    from backcast.testing.postgres import postgres_server

    with postgres_server() as server:
        yield server
