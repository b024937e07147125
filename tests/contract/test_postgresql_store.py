"""The PostgreSQL store keeps the contract, and survives what can happen to a server."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import text

from backcast.errors import BackcastError, ConfigError, StateConflict, Unavailable
from backcast.store import find_store, open_store, postgresql
from backcast.store.reader import listing
from backcast.store.schema import effects
from backcast.store.sql import SqlStore
from backcast.testing.postgres import PostgresServer
from backcast.testing.samples import sample_manifest
from backcast.testing.store_contract import StoreContract


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    return postgres.database()


@pytest.fixture
def url(postgres: PostgresServer, database: str) -> str:
    return postgres.url(database)


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    with open_store(url) as store:
        yield store


def told(error: BackcastError) -> str:
    """Everything that a user or `--json` sees of it."""
    return f"{error} {error.as_dict()}"


class TestPostgresqlStore(StoreContract):
    """Every sentence of the contract, on PostgreSQL."""

    @pytest.fixture
    def url(self, postgres: PostgresServer, database: str) -> str:
        return postgres.url(database)

    @pytest.fixture
    def raw(self, postgres: PostgresServer, database: str) -> Callable[[str], None]:
        def execute(statement: str) -> None:
            postgres.execute(statement, database)

        return execute


class TestSchema:
    """A store may live beside other tables, in a schema of its own."""

    def test_a_schema_of_its_own_is_made_beside_the_tables_of_others(
        self, postgres: PostgresServer, url: str, database: str
    ) -> None:
        postgres.execute("CREATE TABLE customers (id INTEGER)", database)
        assert find_store(f"{url}?schema=restatements") is None
        with open_store(f"{url}?schema=restatements") as store:
            run = store.runs.create(sample_manifest())
            assert store.database.where.endswith(f"{database}?schema=restatements")
        with open_store(f"{url}?schema=others") as other:
            assert other.runs.runs() == []
            assert other.runs.create(sample_manifest()).run_id == run.run_id
        schemas = "SELECT DISTINCT schemaname FROM pg_tables WHERE tablename = 'runs' ORDER BY 1"
        assert postgres.execute(schemas, database) == [("others",), ("restatements",)]

    def test_a_user_that_may_use_the_schema_but_not_make_one_is_enough(
        self, postgres: PostgresServer, database: str
    ) -> None:
        user = f"limited_{database}"
        postgres.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'pw'; CREATE SCHEMA own AUTHORIZATION {user}", database)
        address = f"postgresql://{user}:pw@{postgres.host}:{postgres.port}/{database}"
        with open_store(f"{address}?schema=own") as store:
            assert store.runs.runs() == []
        with pytest.raises(Unavailable, match="does not let this user"):
            open_store(f"{address}?schema=public")


class TestSecrets:
    """What goes wrong is told without statement, values, user or password."""

    @pytest.mark.parametrize(
        "bad",
        [
            "postgresql://",
            "postgresql://ann:secret@host",
            "postgresql://ann:secret@host/db/secret",
            "postgresql://ann:secret@host/db?sslmod=secret",
            "postgresql://ann:secret@host/db?password=secret",
            "postgresql://ann:secret@host/db?schema=se-cret",
            "postgresql://ann:secret@host:secret/db",
            "postgresql+asyncpg://ann:secret@host/db",
        ],
    )
    def test_an_address_that_cannot_hold_a_store_is_a_config_error(self, bad: str) -> None:
        with pytest.raises(ConfigError) as refused:
            open_store(bad)
        assert "secret" not in "".join(traceback.format_exception(refused.value))

    @pytest.mark.parametrize(
        ("change", "meaning"),
        [
            ({"username": "nobody_here"}, "refuses this user or its password"),
            ({"password": "wrong-secret"}, "refuses this user or its password"),
            ({"database": "nowhere"}, "no such database"),
            ({"port": 1}, "cannot be reached"),
            ({"host": "nowhere.invalid"}, "cannot be reached"),
        ],
    )
    def test_a_server_that_does_not_let_us_in_is_told_from_one_that_is_not_there(
        self, postgres: PostgresServer, url: str, change: dict[str, Any], meaning: str
    ) -> None:
        from sqlalchemy import make_url

        changed = make_url(url).set(**change)
        with pytest.raises(Unavailable, match=meaning) as refused:
            open_store(changed.render_as_string(hide_password=False))
        assert refused.value.hint
        assert changed.password is not None
        assert changed.password not in "".join(traceback.format_exception(refused.value))
        assert str(changed.username) not in told(refused.value)

    def test_a_store_names_its_place_and_nobody(self, store: SqlStore, postgres: PostgresServer, database: str) -> None:
        assert store.database.where == f"postgresql://{postgres.host}:{postgres.port}/{database}"
        assert postgres.password not in f"{store.database.engine} {store.database.engine.url} {postgres}"

    def test_a_refused_record_is_told_without_its_values(self, store: SqlStore) -> None:
        run = store.runs.create(sample_manifest())
        row = {
            "run_id": "other-run",
            "name": "publish",
            "key": "k",
            "state": "intended",
            "data": "{}",
            "at": run.created_at,
        }
        with pytest.raises(StateConflict, match="effects_run_id_fkey") as refused, store.database.write() as connection:
            connection.execute(effects.insert().values(row))
        assert "other-run" not in told(refused.value)

    @pytest.mark.parametrize("statement", ["SELECT 'my secret'::int", "SELECT 'my secret' FROM", "SELECT secret()"])
    def test_a_failed_statement_is_told_without_its_text(self, store: SqlStore, statement: str) -> None:
        with pytest.raises(Unavailable, match="SQLSTATE") as refused, store.database.write() as connection:
            connection.execute(text(statement))
        assert "secret" not in told(refused.value)


class TestServer:
    """What can happen to a server ends in a clear error, or in nothing at all."""

    def test_settings_that_durability_rests_on_are_in_force(self, store: SqlStore, postgres: PostgresServer) -> None:
        assert postgres.execute("SHOW synchronous_commit") == [("off",)]
        expected = {"synchronous_commit": "on", "transaction_isolation": "read committed", "lock_timeout": "30s"}
        with store.database.write() as connection:
            found = {name: connection.exec_driver_sql(f"SHOW {name}").scalar_one() for name in expected}
        assert found == expected

    def test_a_reader_cannot_write(self, store: SqlStore) -> None:
        with pytest.raises(Unavailable, match="read-only"), store.database.read() as connection:
            connection.execute(effects.delete())

    def test_a_restarted_server_is_met_with_new_connections(
        self, store: SqlStore, postgres: PostgresServer, database: str
    ) -> None:
        run = store.runs.create(sample_manifest())
        _end_connections(postgres, database)
        assert store.runs.run(run.run_id) == run

    def test_a_connection_lost_in_the_middle_changes_nothing(
        self, store: SqlStore, postgres: PostgresServer, database: str
    ) -> None:
        from backcast.store.events import append

        run = store.runs.create(sample_manifest())

        def write() -> None:
            with store.database.write() as connection:
                append(connection, run.run_id, "lost", {})
                _end_connections(postgres, database)

        with pytest.raises(Unavailable, match="cannot be reached"):
            write()
        store.runs.record(run.run_id, "kept")
        assert [each.name for each in store.runs.events(run.run_id)] == ["state.planned", "kept"]
        assert store.verify_events(run.run_id) is None

    def test_a_writer_that_stands_still_loses_its_turn(
        self, store: SqlStore, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A stopped machine must not stop every other one."""
        from backcast.store.events import append

        run = store.runs.create(sample_manifest())
        monkeypatch.setattr(postgresql, "STALLED_SECONDS", 1)
        with open_store(url) as other:

            def stand_still() -> None:
                with store.database.write() as connection:
                    append(connection, run.run_id, "stalled", {})
                    other.runs.record(run.run_id, "meanwhile")
                    append(connection, run.run_id, "too late", {})

            with pytest.raises(Unavailable, match="stood still"):
                stand_still()
            assert [each.name for each in other.runs.events(run.run_id)] == ["state.planned", "meanwhile"]

    def test_an_old_server_is_refused(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(postgresql, "OLDEST", 99)
        with pytest.raises(Unavailable, match="99 or newer is needed"):
            open_store(url)

    @pytest.mark.parametrize("dataset", [None, "orders"])
    @pytest.mark.parametrize("open_only", [False, True])
    def test_listing_runs_is_one_search_of_an_index(
        self, store: SqlStore, dataset: str | None, open_only: bool
    ) -> None:
        query = listing(dataset=dataset, open_only=open_only, limit=50)
        statement = str(query.compile(store.database.engine, compile_kwargs={"literal_binds": True}))
        with store.database.read() as connection:
            # An empty table is read whole whatever the indexes.
            connection.exec_driver_sql("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
            steps = [row[0] for row in connection.exec_driver_sql(f"EXPLAIN {statement}")]
        assert not any("Sort" in step or "Seq Scan" in step for step in steps), steps
        assert any("Index Scan Backward using runs_by_" in step for step in steps), steps


def _end_connections(postgres: PostgresServer, database: str) -> None:
    postgres.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")
    while postgres.execute(f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'") != [(0,)]:
        time.sleep(0.01)
