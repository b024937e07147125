"""A run may have more chunks than a database takes values in one statement."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy import event

from backcast.model.run import lease_name
from backcast.model.states import ChunkState
from backcast.store import open_store
from backcast.testing.samples import sample_holder, sample_manifest


def test_all_chunks_of_a_long_run_are_reset_at_once(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        run_id = store.runs.create(sample_manifest(days=1500)).run_id
        store.database.close()
        event.listen(
            store.database.engine,
            "connect",
            lambda connection, _: connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 1000),
        )
        lease = store.leases.acquire(lease_name(run_id), sample_holder(), 60)
        store.chunks.reset(run_id, [chunk.chunk_id for chunk in store.runs.chunks(run_id)], lease)
        assert {chunk.state for chunk in store.runs.chunks(run_id)} == {ChunkState.PENDING}
