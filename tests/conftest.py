"""One Spark session per test process, on a lake of its own; a namespace of its own for every test."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.cheap import INTERPRETED, JAVA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.spark.settings import SessionSettings
    from backcast.testing.kafka import KafkaBroker
    from backcast.testing.orders import Orders
    from backcast.testing.postgres import PostgresServer
    from backcast.testing.registry import SchemaRegistry

# A test process shares two cores with a JVM: a slow example says nothing about the code.
settings.register_profile("backcast", deadline=None)
settings.load_profile("backcast")

_numbers = itertools.count(1)
_LONGEST = (
    "crash/test_real_kills.py",
    "crash/test_kafka_kills.py",
    "docs/test_demo.py",
    "e2e/test_cluster.py",
    "e2e/test_delta_catalog.py",
    "e2e/test_init_project.py",
)

_PACED = ("test_iceberg_pace.py", "test_live_stream.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest comes first: at the end nobody waits for a worker that has just begun with it."""
    items.sort(key=lambda item: not item.path.as_posix().endswith(_LONGEST))


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
            **INTERPRETED,
            "spark.databricks.delta.snapshotPartitions": "1",
            # The first query with state sets it for the whole JVM: tests of checkpoints need snapshots soon.
            "spark.sql.streaming.stateStore.maintenanceInterval": "300ms",
            # Queries leave much behind, and nearly all of it at once. And this JVM earns the second compiler back.
            "spark.driver.extraJavaOptions": f"{JAVA} -Xmn768m -XX:TieredStopAtLevel=4",
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


@pytest.fixture(autouse=True)
def _at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here lives of many commits pass in seconds, as no run's do: without a pause, but where pauses are what is tried.

    Processes that tests start keep their pace.
    """
    if "spark" in request.fixturenames and request.path.name not in _PACED:
        monkeypatch.setattr("backcast.targets.iceberg.pace.BURST", 10_000)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server that all tests of this process share; each takes a `database()` of its own."""
    from backcast.testing.postgres import postgres_server

    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def broker() -> Iterator[KafkaBroker]:
    """A Kafka broker that all tests of this process share; each creates topics of its own."""
    from backcast.testing.kafka import kafka_broker

    with kafka_broker() as server:
        yield server


@pytest.fixture
def new_orders(
    tmp_path: Path, spark: SparkSession, broker: KafkaBroker, namespace: str, lake_root: Path
) -> Callable[..., Orders]:
    """Makes the project and its topic: `new_orders(partitions=64, table_format=..., cleanup_policy="compact")`."""
    from backcast.testing.orders import Orders as Made

    return partial(Made.create, tmp_path, spark, broker, namespace, lake_root)


@pytest.fixture(scope="session")
def registry() -> Iterator[SchemaRegistry]:
    """A schema registry that all tests of this process share; each takes subjects of its own."""
    from backcast.testing.registry import schema_registry

    with schema_registry() as server:
        yield server
