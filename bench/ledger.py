"""Promise: processes that claim chunks side by side get each chunk once, and listing runs stays one indexed query."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.dialects import sqlite

from backcast.errors import Unavailable
from backcast.model.run import Lease, lease_name
from backcast.model.states import RunState
from backcast.store import open_store
from backcast.store.reader import listing
from backcast.store.sql import SqlStore
from backcast.testing.postgres import postgres_server
from backcast.testing.samples import sample_holder, sample_manifest
from backcast.testing.store_workers import race
from bench.promise import Result, Sizes

_LEASE_SECONDS = 3_600.0
_EACH_ONCE = "each once"


def measure(root: Path, sizes: Sizes) -> list[Result]:
    """On both databases, each as durable as in production."""
    file = f"sqlite:///{root / 'ledger.db'}"
    return [_claims(file, sizes, "SQLite"), on_postgresql(sizes), _listing(file)]


def on_postgresql(sizes: Sizes) -> Result:
    """Skipped where no server is installed."""
    try:
        with postgres_server(durable=True) as server:
            return _claims(server.url(server.database()), sizes, "PostgreSQL")
    except Unavailable as error:
        return Result(
            name="ledger",
            promise=_promise(sizes),
            on="PostgreSQL",
            target=_EACH_ONCE,
            measured=error.message,
            held=False,
            skipped=True,
        )


def _claims(url: str, sizes: Sizes, database: str) -> Result:
    """One chunk a claim: the dearest way to empty a ledger."""
    with open_store(url) as store:
        run = store.runs.create(sample_manifest(days=sizes.ledger_chunks))
        lease = store.leases.acquire(lease_name(run.run_id), sample_holder(), _LEASE_SECONDS)
        for state in (RunState.APPROVED, RunState.RUNNING):
            run = store.runs.transition(run, state, token=lease.token)
    claims: list[Claims] = race(claim_singly, url, run.run_id, lease, processes=sizes.workers)
    seconds = max(each.ended for each in claims) - min(each.began for each in claims)
    times = Counter(name for each in claims for name in each.names)
    doubled = sum(1 for count in times.values() if count > 1)
    rate = sizes.ledger_chunks / seconds
    return Result(
        name="ledger",
        promise=_promise(sizes),
        on=database,
        target=_EACH_ONCE,
        measured=f"{len(times):,} once, {doubled} twice; {rate:,.0f} a second",
        held=len(times) == sizes.ledger_chunks and doubled == 0,
        numbers={
            "seconds": round(seconds, 2),
            "a_second": round(rate),
            "by_worker": [len(each.names) for each in claims],
        },
    )


def _promise(sizes: Sizes) -> str:
    return f"{sizes.workers} processes claim {sizes.ledger_chunks:,} chunks, one at a time"


def _listing(url: str) -> Result:
    with open_store(url) as store:
        plan = _listing_plan(store)
    return Result(
        name="ledger",
        promise="listing runs",
        on="SQLite",
        target="one indexed query",
        measured="; ".join(plan),
        held=len(plan) == 1 and "USING INDEX" in plan[0],
        numbers={"plan": plan},
    )


@dataclass(frozen=True, slots=True)
class Claims:
    """What one process got, and when it began and ended by the machine's own clock."""

    names: tuple[str, ...]
    began: float
    ended: float


def claim_singly(url: str, run_id: str, lease: Lease) -> Claims:
    """Claim until nothing is left."""
    names: list[str] = []
    with open_store(url) as store:
        began = time.monotonic()
        while claimed := store.chunks.claim(run_id, lease, 1):
            names += [chunk.chunk_id for chunk in claimed]
    return Claims(tuple(names), began, time.monotonic())


def _listing_plan(store: SqlStore) -> list[str]:
    """What SQLite does for `backcast list`, step by step."""
    query = listing(dataset=None, open_only=False, limit=50).compile(
        dialect=sqlite.dialect(), compile_kwargs={"literal_binds": True}
    )
    with store.database.read() as connection:
        return [str(row[3]) for row in connection.execute(text(f"EXPLAIN QUERY PLAN {query}"))]
