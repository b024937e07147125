"""Words that no database can hold are recorded as far as they can be read: an outcome must never get lost for them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.model.run import lease_name
from backcast.model.states import RunState
from backcast.store import open_store
from backcast.testing.samples import sample_holder, sample_manifest

if TYPE_CHECKING:
    from backcast.testing.postgres import PostgresServer

ODD = "no rate for \udcff\0 here"


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_chunk_fails_with_whatever_words(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    address = f"sqlite:///{tmp_path}/store.db"
    if kind == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        address = server.url(server.database())
    with open_store(address) as store:
        run = store.runs.create(sample_manifest())
        for state in (RunState.APPROVED, RunState.RUNNING):
            run = store.runs.transition(run, state)
        lease = store.leases.acquire(lease_name(run.run_id), sample_holder(), 30)
        (chunk,) = store.chunks.claim(run.run_id, lease, 1)
        store.chunks.failed(run.run_id, [chunk.chunk_id], ODD, lease)
        store.runs.record(run.run_id, "chunks.failed", error=ODD)
        run = store.runs.transition(run, RunState.FAILED, detail=ODD)
        assert store.runs.chunks(run.run_id)[0].error == run.detail == "no rate for ?\ufffd here"
        assert store.verify_events(run.run_id) is None
