"""The SQLite store keeps the contract, and survives what can happen to a file."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import event

from backcast.errors import ConfigError, Unavailable
from backcast.model.states import RunState
from backcast.store import open_store
from backcast.store.engine import now
from backcast.store.reader import listing
from backcast.store.schema import REVISIONS, metadata
from backcast.store.sql import SqlStore
from backcast.testing import store_workers as workers
from backcast.testing.samples import sample_manifest
from backcast.testing.store_contract import StoreContract


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "store.db"


@pytest.fixture
def url(file: Path) -> str:
    return f"sqlite:///{file}"


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    with open_store(url) as store:
        yield store


class TestSqliteStore(StoreContract):
    """Every sentence of the contract, on SQLite."""

    @pytest.fixture
    def url(self, file: Path) -> str:
        return f"sqlite:///{file}"


class TestHistory:
    """A changed byte in a run's history is found."""

    @pytest.mark.parametrize(
        ("tampering", "broken"),
        [
            ("UPDATE events SET data = replace(data, 'ann', 'bob') WHERE number = 2", 2),
            ("UPDATE events SET data = replace(data, ':', ': ') WHERE number = 2", 2),
            ("UPDATE events SET data = '{' WHERE number = 2", 2),
            ("UPDATE events SET at = at + 1 WHERE number = 3", 3),
            ("UPDATE events SET name = 'state.published' WHERE number = 1", 1),
            ("UPDATE events SET sha256 = replace(sha256, substr(sha256, 1, 1), 'x') WHERE number = 3", 3),
            ("DELETE FROM events WHERE number = 2", 2),
            ("DELETE FROM events WHERE number = 4", 4),
            ("DELETE FROM events", 1),
        ],
    )
    def test_tampering_is_found_at_its_first_event(
        self, store: SqlStore, file: Path, tampering: str, broken: int
    ) -> None:
        run = store.runs.create(sample_manifest())
        for number in range(3):
            store.runs.record(run.run_id, "note", by="ann", number=number)
        assert store.verify_events(run.run_id) is None
        with sqlite3.connect(file) as connection:
            assert connection.execute(tampering).rowcount > 0
        connection.close()
        assert store.verify_events(run.run_id) == broken

    def test_a_manifest_that_was_changed_is_refused(self, store: SqlStore, file: Path) -> None:
        run = store.runs.create(sample_manifest())
        with sqlite3.connect(file) as connection:
            connection.execute("UPDATE manifests SET document = replace(document, 'bug', 'fix')")
        connection.close()
        with pytest.raises(Unavailable, match="was changed"):
            store.runs.manifest(run.run_id)


class TestMigrations:
    """A store is brought to this code's schema, or refused."""

    def test_the_migrations_make_exactly_the_tables_of_the_schema(self, store: SqlStore) -> None:
        from alembic.autogenerate import compare_metadata
        from alembic.config import Config
        from alembic.migration import MigrationContext
        from alembic.script import ScriptDirectory

        from backcast.store.migrate import scripts

        with store.database.read() as connection:
            context = MigrationContext.configure(connection, opts={"version_table": "store_version"})
            assert compare_metadata(context, metadata) == []
        config = Config()
        config.set_main_option("script_location", str(scripts()))
        revisions = [step.revision for step in ScriptDirectory.from_config(config).walk_revisions()]
        assert tuple(reversed(revisions)) == REVISIONS

    def test_an_empty_file_is_made_a_store(self, url: str, file: Path) -> None:
        file.parent.mkdir(parents=True)
        file.touch()
        with open_store(url) as store:
            assert store.runs.runs() == []

    def test_a_newer_store_is_refused_and_left_alone(self, store: SqlStore, url: str, file: Path) -> None:
        store.close()
        with sqlite3.connect(file) as connection:
            connection.execute("UPDATE store_version SET version_num = '9999'")
        connection.close()
        before = file.read_bytes()
        with pytest.raises(Unavailable, match="newer Backcast") as refused:
            open_store(url)
        assert "upgrade" in refused.value.hint
        assert file.read_bytes() == before

    def test_a_database_of_someone_else_is_refused(self, url: str, file: Path) -> None:
        file.parent.mkdir(parents=True)
        with sqlite3.connect(file) as connection:
            connection.execute("CREATE TABLE customers (id INTEGER)")
        connection.close()
        with pytest.raises(Unavailable, match="not a Backcast store"):
            open_store(url)

    def test_four_processes_may_make_the_same_store_at_once(self, url: str) -> None:
        made = workers.race(workers.open_and_create, url)
        assert len(set(made)) == 1
        with open_store(url) as store:
            assert [run.run_id for run in store.runs.runs()] == made[:1]

    def test_opening_a_current_store_does_not_load_alembic(self, store: SqlStore, url: str) -> None:
        code = (
            f"import sys; from backcast.store import open_store; open_store({url!r}); print('alembic' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        assert done.stdout.strip() == "False"


class TestFile:
    """What can happen to a file ends in a clear error, or in nothing at all."""

    def test_settings_that_durability_rests_on_are_in_force(self, store: SqlStore) -> None:
        expected = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}
        with store.database.read() as connection:
            found = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in expected}
        assert found == expected

    def test_a_missing_store_is_not_made_by_a_reader(self, url: str, file: Path) -> None:
        with pytest.raises(Unavailable) as refused:
            open_store(url, create=False)
        assert "backcast plan" in refused.value.hint
        assert str(file) in refused.value.message
        assert not file.parent.exists()

    @pytest.mark.parametrize("bad", ["sqlite://", "sqlite:///:memory:", "postgresql://u:secret@h/d", "no url"])
    def test_an_address_that_cannot_hold_a_store_is_a_config_error(self, bad: str) -> None:
        with pytest.raises(ConfigError) as refused:
            open_store(bad)
        assert "secret" not in str(refused.value.as_dict())

    def test_a_folder_that_cannot_be_made_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(Unavailable, match=r"file/store\.db"):
            open_store(f"sqlite:///{tmp_path}/file/store.db")

    def test_a_file_of_garbage_is_named(self, url: str, file: Path) -> None:
        file.parent.mkdir(parents=True)
        file.write_bytes(b"garbage" * 1000)
        with pytest.raises(Unavailable, match=r"store\.db is not a Backcast store"):
            open_store(url)

    def test_a_damaged_file_is_named(self, store: SqlStore, url: str, file: Path) -> None:
        for number in range(30):
            store.runs.create(sample_manifest(days=30, reason=str(number)))
        store.close()
        pages = file.read_bytes()
        file.write_bytes(pages[:8192] + b"\xff" * (len(pages) - 8192))
        with pytest.raises(Unavailable, match=r"store\.db"), open_store(url) as damaged:
            damaged.runs.runs()

    def test_a_full_disk_is_said_to_be_full_and_changes_nothing(self, store: SqlStore) -> None:
        run = store.runs.create(sample_manifest())
        event.listen(store.database.engine, "checkout", lambda raw, *_: raw.execute("PRAGMA max_page_count = 1"))
        with pytest.raises(Unavailable, match="disk is full"):
            store.runs.record(run.run_id, "note", text="x" * 1_000_000)
        assert store.verify_events(run.run_id) is None

    def test_a_store_that_stays_locked_says_so(self, store: SqlStore, url: str, file: Path) -> None:
        run = store.runs.create(sample_manifest())
        with open_store(url, busy_seconds=0.1) as hasty, store.database.write():
            assert hasty.runs.run(run.run_id) == run
            with pytest.raises(Unavailable, match="held by another process") as refused:
                hasty.runs.record(run.run_id, "note")
        assert refused.value.exit_code == 5
        assert str(file) in refused.value.message

    def test_readers_see_the_last_commit_while_a_writer_writes(self, store: SqlStore, url: str) -> None:
        run = store.runs.create(sample_manifest())
        process, said = workers.start(workers.hang_in_transaction, url, run.run_id)
        try:
            assert said.get(timeout=60) == "in"
            with open_store(url, create=False, busy_seconds=0.1) as reader:
                assert [each.name for each in reader.runs.events(run.run_id)] == ["state.planned"]
        finally:
            process.kill()
            process.join()

    def test_a_writer_killed_in_the_middle_leaves_a_usable_store(self, store: SqlStore, url: str) -> None:
        run = store.runs.create(sample_manifest())
        process, said = workers.start(workers.hang_in_transaction, url, run.run_id)
        assert said.get(timeout=60) == "in"
        process.kill()
        process.join()
        with open_store(url, busy_seconds=5) as survivor:
            survivor.runs.transition(run, RunState.APPROVED)
            assert [each.name for each in survivor.runs.events(run.run_id)] == ["state.planned", "state.approved"]
            assert survivor.verify_events(run.run_id) is None

    def test_a_copied_file_is_the_whole_store_once_it_was_closed(self, store: SqlStore, file: Path) -> None:
        run = store.runs.create(sample_manifest())
        store.close()
        shutil.copy(file, file.with_name("copy.db"))
        with open_store(f"sqlite:///{file.with_name('copy.db')}", create=False) as copy:
            assert copy.runs.run(run.run_id) == run

    @pytest.mark.parametrize("dataset", [None, "orders"])
    @pytest.mark.parametrize("open_only", [False, True])
    def test_listing_runs_is_one_search_of_an_index(
        self, store: SqlStore, dataset: str | None, open_only: bool
    ) -> None:
        query = listing(dataset=dataset, open_only=open_only, limit=50)
        statement = str(query.compile(store.database.engine, compile_kwargs={"literal_binds": True}))
        with store.database.read() as connection:
            steps = [row.detail for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}")]
        assert "USING INDEX runs_by_" in steps[0]

    def test_the_stores_clock_is_utc_and_moves_within_a_transaction(self, store: SqlStore) -> None:
        with store.database.write() as connection:
            first = now(connection)
            time.sleep(0.05)
            second = now(connection)
        assert timedelta(milliseconds=40) < second - first < timedelta(seconds=10)
        assert abs(datetime.now(UTC) - second) < timedelta(seconds=10)
