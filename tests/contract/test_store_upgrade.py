"""A store that the first release wrote works with this one, on every database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sqlalchemy import MetaData, Table

from backcast.attest.bundle import bundle
from backcast.attest.step import attest
from backcast.attest.verify import verify
from backcast.model.live import stream_lease
from backcast.model.run import lease_name
from backcast.model.states import ChunkState, RunState
from backcast.store import open_store
from backcast.store.engine import Database
from backcast.store.migrate import recorded, upgrade
from backcast.store.open import dialect_of
from backcast.store.schema import REVISIONS
from backcast.testing.samples import sample_holder, sample_publication, sample_verdict
from backcast.testing.store_stream_contract import sample_batch

FIRST = "0001"
_NUMBERED_BY_THE_DATABASE = {"effects": "effect_id", "verdicts": "verdict_id"}


def first_release() -> dict[str, list[dict[str, Any]]]:
    """Every row of a store of the first release: one run published and superseded, one failed."""
    rows: dict[str, list[dict[str, Any]]] = json.loads(Path(__file__).with_name("first_release.json").read_text())
    return rows


def make_first_release(url: str) -> None:
    dialect = dialect_of(url)
    assert dialect.reachable(create=True)
    database = Database(dialect)
    database.prepare()
    with database.write() as connection:
        upgrade(connection, FIRST)
        for name, rows in first_release().items():
            table = Table(name, MetaData(), autoload_with=connection)
            own = _NUMBERED_BY_THE_DATABASE.get(name)
            connection.execute(table.delete())
            connection.execute(table.insert(), [{key: row[key] for key in row if key != own} for row in rows])
        assert recorded(connection) == FIRST
    database.close()


def test_everything_that_the_first_release_wrote_is_readable_after_the_upgrade(either_url: str) -> None:
    make_first_release(either_url)
    with open_store(either_url) as store:
        with store.database.read() as connection:
            assert recorded(connection) == REVISIONS[-1]
        failed, published = store.runs.runs()
        assert (failed.pipeline, failed.state, failed.detail) == ("failed", RunState.FAILED, "1 chunk failed")
        assert (published.state, published.superseded_by) == (RunState.PUBLISHED, "later-run")
        for run in (failed, published):
            assert store.verify_events(run.run_id) is None
            assert store.runs.manifest(run.run_id).pipeline == run.pipeline
        assert store.runs.events(published.run_id)[1].data == {"text": "ä", "big": str(2**63)}
        assert [chunk.output_rows for chunk in store.runs.chunks(published.run_id)] == [20, 0, 10]
        assert {chunk.inputs for chunk in store.runs.chunks(published.run_id)} == {()}, "nobody counted them"
        assert [chunk.error for chunk in store.runs.chunks(failed.run_id)] == ["division by zero", "", ""]
        assert [record.version for record in store.runs.stage_records(published.run_id)] == ["55", "56"]
        assert store.runs.verdict(published.run_id) == sample_verdict(published.run_id)
        assert store.runs.publications(published.run_id) == [sample_publication(published.run_id)]
        assert [effect.name for effect in store.effects.open(published.run_id)] == ["publish"]
        assert verify(bundle(attest(store.runs, failed.run_id))).manifest == failed.manifest_sha256, "its own bytes"


def test_a_run_of_the_first_release_goes_on_after_the_upgrade(either_url: str) -> None:
    make_first_release(either_url)
    (last_token,) = (row["value"] for row in first_release()["tokens"])
    with open_store(either_url) as store:
        run = store.runs.runs()[0]
        lease = store.leases.acquire(lease_name(run.run_id), sample_holder(), 60)
        assert lease.token > last_token
        store.runs.transition(run, RunState.RUNNING, token=lease.token)
        store.chunks.reset(run.run_id, ["2025-01-01"], lease)
        claimed = store.chunks.claim(run.run_id, lease, 9)
        assert [(chunk.state, chunk.attempts) for chunk in claimed] == [
            (ChunkState.RUNNING, 2),
            (ChunkState.RUNNING, 1),
            (ChunkState.RUNNING, 1),
        ]
        assert store.effects.begin(run.run_id, "stage.open", "branch").effect_id > len(first_release()["effects"])
        assert store.verify_events(run.run_id) is None


def test_batches_of_a_stream_keep_their_order_when_numbers_take_the_place_of_times(either_url: str) -> None:
    """The same times in two streams, and batch 0 of a second query behind batch 9 of the first."""
    dialect = dialect_of(either_url)
    assert dialect.reachable(create=True)
    database = Database(dialect)
    database.prepare()
    begun = [("live", "q-1", 8), ("live", "q-1", 9), ("live", "q-2", 0), ("other", "q-3", 4)]
    with database.write() as connection:
        upgrade(connection, "0004")
        table = Table("stream_batches", MetaData(), autoload_with=connection)
        for number, (stream, query_id, batch) in enumerate(begun):
            told = sample_batch(batch, stream=stream, query_id=query_id).as_json()
            row = {"stream": stream, "query_id": query_id, "batch": batch, "at": 1_000_000 * (7 + number // 2)}
            connection.execute(table.insert().values({**row, "document": json.dumps(told)}))
    database.close()
    with open_store(either_url) as store:
        found = store.streams.batches("live", 9)
        assert [(each.query_id, each.batch) for each in found] == [("q-2", 0), ("q-1", 9), ("q-1", 8)]
        lease = store.leases.acquire(stream_lease("live"), sample_holder(), 60)
        store.streams.record(sample_batch(1, query_id="q-2"), lease)
        assert [each.batch for each in store.streams.batches("live", 2)] == [1, 0]
        assert [each.batch for each in store.streams.batches("other", 9)] == [4]
