"""The whole flow with nothing on SQLite: an Iceberg catalog and the store, both on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.control import ControlPlane
from backcast.model.states import RunState
from backcast.project.config import load_project
from backcast.project.session import session_settings
from backcast.project.wiring import Wiring
from backcast.spark.settings import catalog_conf
from backcast.spark.versions import Package
from backcast.testing.postgres import PostgresServer
from backcast.testing.shop import Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PASSWORD = "BACKCAST_TEST_POSTGRES_PASSWORD"  # noqa: S105 - the name of a variable


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    return postgres.database()


@pytest.fixture
def shop(
    tmp_path: Path, spark: SparkSession, postgres: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> Shop:
    """A shop whose tables are in a catalog of the database and whose runs are in a schema beside it."""
    monkeypatch.setenv(PASSWORD, postgres.password)
    namespace = f"{database}.shop"
    Shop(tmp_path, namespace, spark).write(tmp_path)
    _move_to_postgresql(tmp_path / "backcast.yaml", postgres, database)
    settings = session_settings(load_project(tmp_path))
    assert settings.packages == (Package.ICEBERG, Package.POSTGRESQL)
    for key, value in catalog_conf(settings.catalogs).items():
        spark.conf.set(key, value)
    shop = Shop.create(tmp_path, spark, namespace, tmp_path)
    _move_to_postgresql(tmp_path / "backcast.yaml", postgres, database)
    return shop


@pytest.fixture
def wiring(shop: Shop) -> Iterator[Wiring]:
    wiring = Wiring(load_project(shop.root))
    yield wiring
    wiring.close()


def _move_to_postgresql(file: Path, postgres: PostgresServer, database: str) -> None:
    catalog = (
        f'{database}: {{type: jdbc, uri: "{postgres.jdbc_url(database)}", warehouse: warehouse,'
        f' jdbc.user: {postgres.user}, jdbc.password: "${{{PASSWORD}}}"}}'
    )
    store = f"postgresql://{postgres.user}:${{{PASSWORD}}}@{postgres.host}:{postgres.port}/{database}?schema=runs"
    lines = file.read_text().splitlines()
    moved = [f"  {catalog}" if line.startswith("  lake:") else line for line in lines]
    file.write_text("\n".join(f'store: "{store}"' if line.startswith("store:") else line for line in moved) + "\n")


def test_a_restatement_from_plan_to_undo_on_postgresql_alone(
    shop: Shop, wiring: Wiring, postgres: PostgresServer, database: str
) -> None:
    control = ControlPlane(wiring)
    before = shop.rows()
    plan = control.plan(shop.request())
    assert not plan.refused, plan.findings
    run = control.run(plan.run_id)
    assert run.state is RunState.ACCEPTED, control.status(plan.run_id)
    assert shop.rows() == before

    live = shop.live("2026-01-09")
    wanted = shop.expected()
    control.publish(plan.run_id)
    assert shop.rows() == wanted

    in_scope = shop.live("2026-01-04")
    control.undo(plan.run_id)
    assert shop.rows() == before + type(before)([live, in_scope])
    assert control.status(plan.run_id).run.state is RunState.UNDONE

    assert not list(shop.root.rglob("*.db")), "no SQLite file was made"
    assert postgres.execute("SELECT count(*) FROM iceberg_tables", database) == [(2,)]
    assert postgres.execute("SELECT state FROM runs.runs", database) == [("undone",)]
    _no_secret_was_written(postgres, database)


def _no_secret_was_written(postgres: PostgresServer, database: str) -> None:
    """Neither the manifest nor any event, effect, verdict, lease or table property holds the password."""
    listing = "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('runs', 'public')"
    tables = postgres.execute(listing, database)
    assert ("runs", "manifests") in tables
    for schema, table in tables:
        rows = postgres.execute(f'SELECT row_to_json(t)::text FROM "{schema}"."{table}" t', database)
        assert not [row for (row,) in rows if postgres.password in row], f"{schema}.{table}"
