"""How every store must be made, upgraded, shared and survived. Part of `backcast.testing.store_contract`."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from backcast.errors import Unavailable
from backcast.model.states import RunState
from backcast.store import find_store, open_store
from backcast.testing import store_workers as workers
from backcast.testing.samples import sample_manifest

if TYPE_CHECKING:
    from backcast.store.sql import SqlStore


class OpeningContract:
    """A store is brought to this code's schema, or refused."""

    def test_the_migrations_make_exactly_the_tables_of_the_schema(self, store: SqlStore) -> None:
        from alembic.autogenerate import compare_metadata
        from alembic.config import Config
        from alembic.migration import MigrationContext
        from alembic.script import ScriptDirectory

        from backcast.store.migrate import scripts
        from backcast.store.schema import REVISIONS, VERSION_TABLE, metadata

        with store.database.read() as connection:
            context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
            assert compare_metadata(context, metadata) == []
        config = Config()
        config.set_main_option("script_location", str(scripts()))
        revisions = [step.revision for step in ScriptDirectory.from_config(config).walk_revisions()]
        assert tuple(reversed(revisions)) == REVISIONS

    def test_a_missing_store_is_not_made_by_a_reader(self, url: str) -> None:
        for _ in range(2):
            assert find_store(url) is None
            with pytest.raises(Unavailable, match="no store at") as refused:
                open_store(url, create=False)
            assert "backcast plan" in refused.value.hint

    def test_a_newer_store_is_refused_and_left_alone(
        self, store: SqlStore, url: str, raw: Callable[[str], None]
    ) -> None:
        from backcast.store.migrate import recorded

        raw("UPDATE store_version SET version_num = '9999'")
        for opened in (open_store, find_store):
            with pytest.raises(Unavailable, match="newer Backcast") as refused:
                opened(url)
            assert "upgrade" in refused.value.hint
        with store.database.read() as connection:
            assert recorded(connection) == "9999"

    def test_a_database_of_someone_else_is_refused(self, url: str, raw: Callable[[str], None]) -> None:
        raw("CREATE TABLE customers (id INTEGER)")
        for opened in (open_store, find_store):
            with pytest.raises(Unavailable, match="not a Backcast store"):
                opened(url)

    def test_four_processes_may_make_the_same_store_at_once(self, url: str) -> None:
        made = workers.race(workers.open_and_create, url)
        assert len(set(made)) == 1
        with open_store(url) as store:
            assert [run.run_id for run in store.runs.runs()] == made[:1]

    def test_opening_a_current_store_does_not_load_alembic(self, store: SqlStore, url: str) -> None:
        code = (
            f"import sys; from backcast.store import open_store; open_store({url!r}).close();"
            "print('alembic' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        assert done.stdout.strip() == "False"


class SharingContract:
    """Processes share a store, and survive each other."""

    def test_a_store_that_stays_locked_says_so(self, store: SqlStore, url: str) -> None:
        run = store.runs.create(sample_manifest())
        with open_store(url, busy_seconds=0.1) as hasty, store.database.write():
            assert hasty.runs.run(run.run_id) == run
            with pytest.raises(Unavailable, match="held by another process") as refused:
                hasty.runs.record(run.run_id, "note")
        assert refused.value.exit_code == 5
        assert store.database.where in refused.value.message

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

    def test_a_reader_keeps_its_view_while_others_commit(self, store: SqlStore) -> None:
        from backcast.store.events import read

        run = store.runs.create(sample_manifest())
        with store.database.read() as connection:
            before = read(connection, run.run_id, 0)
            store.runs.record(run.run_id, "note")
            assert read(connection, run.run_id, 0) == before
        assert len(store.runs.events(run.run_id)) == len(before) + 1

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

    def test_a_forked_process_does_not_use_its_parents_connections(self, store: SqlStore, url: str) -> None:
        run = store.runs.create(sample_manifest())
        assert workers.race(workers.fork_and_note, url, run.run_id, processes=1) == [0]
        assert [each.name for each in store.runs.events(run.run_id)] == ["state.planned", "child", "parent"]

    def test_the_stores_clock_is_utc_and_moves_within_a_transaction(self, store: SqlStore) -> None:
        from backcast.store.engine import now

        with store.database.write() as connection:
            first = now(connection)
            time.sleep(0.05)
            second = now(connection)
        assert timedelta(milliseconds=40) < second - first < timedelta(seconds=10)
        assert abs(datetime.now(UTC) - second) < timedelta(seconds=10)
