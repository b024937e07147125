"""The SQLite store keeps the contract, and survives what can happen to a file."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event

from backcast.errors import ConfigError, Unavailable
from backcast.store import find_store, open_store
from backcast.store.reader import listing
from backcast.store.sql import SqlStore
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

    @pytest.fixture
    def raw(self, file: Path) -> Callable[[str], None]:
        def execute(statement: str) -> None:
            file.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(file)) as connection, connection:
                connection.execute(statement)

        return execute


class TestFile:
    """What can happen to a file ends in a clear error, or in nothing at all."""

    def test_settings_that_durability_rests_on_are_in_force(self, store: SqlStore) -> None:
        expected = {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}
        with store.database.read() as connection:
            found = {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in expected}
        assert found == expected

    def test_looking_for_a_store_makes_neither_file_nor_folder(self, url: str, file: Path) -> None:
        assert find_store(url) is None
        assert not file.parent.exists()

    def test_an_empty_file_is_made_a_store(self, url: str, file: Path) -> None:
        file.parent.mkdir(parents=True)
        file.touch()
        assert find_store(url) is None
        with open_store(url) as store:
            assert store.runs.runs() == []

    def test_a_newer_store_is_left_as_it_is_to_the_byte(self, store: SqlStore, url: str, file: Path) -> None:
        store.close()
        with closing(sqlite3.connect(file)) as connection, connection:
            connection.execute("UPDATE store_version SET version_num = '9999'")
        before = file.read_bytes()
        with pytest.raises(Unavailable, match="newer Backcast"):
            open_store(url)
        assert file.read_bytes() == before

    @pytest.mark.parametrize("bad", ["sqlite://", "sqlite:///:memory:", "mysql://u:secret@h/d", "no url"])
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
