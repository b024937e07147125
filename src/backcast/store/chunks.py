"""The ledger: who works on which chunk, and how it ended. Every outcome is fenced by lease and token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, or_, select, update

from backcast.errors import StateConflict, UnknownName
from backcast.model.canary import CHOSEN
from backcast.model.run import Chunk, InputCount, Lease, StageRecord, lease_name, worker_lease_name
from backcast.model.states import ChunkState, RunState
from backcast.model.throttle import Throttle
from backcast.store import events, jobs, leases, reader
from backcast.store.dialect import StoreNow
from backcast.store.engine import Database, fields, now
from backcast.store.schema import chunks, stage_records
from backcast.store.schema import leases as lease_rows

_CLEAN = {
    "state": ChunkState.PENDING.value,
    "token": None,
    "lease": None,
    "version": None,
    "output_rows": None,
    "inputs": (),
    "started_at": None,
    "finished_at": None,
    "error": "",
}


_SLICE = 900
"""Names in one statement: a run may have more chunks than a database takes values."""


class SqlChunks:
    """Implements the port `ChunkLedger`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(self, run_id: str, lease: Lease, limit: int, throttle: Throttle | None = None) -> list[Chunk]:
        """Also refuses when the run is no longer running, so that a cancelled run stops at its next claim."""
        with self._database.write() as connection:
            _fence(connection, run_id, lease)
            run = reader.find(connection, run_id)
            if run.state is not RunState.RUNNING:
                raise StateConflict(
                    f"{run_id} is {run.state.value}: only a running run may claim chunks",
                    hint=f"look at it with `backcast status {run_id}`",
                    run_id=run_id,
                    state=run.state.value,
                )
            if throttle is not None and jobs.is_full(connection, run_id, throttle):
                return []
            return _claim(connection, run_id, lease, limit)

    def commits(self, run_id: str) -> list[datetime]:
        with self._database.read() as connection:
            return sorted(jobs.committed(connection, run_id).values(), reverse=True)

    def release_lost(self, run_id: str) -> int:
        with self._database.write() as connection:
            at = now(connection)
            leases.forget_workers(connection, run_id, at)
            alive = select(lease_rows.c.token).where(lease_rows.c.expires_at > at)
            lost = or_(chunks.c.lease.is_(None), chunks.c.lease.not_in(alive))
            running = and_(chunks.c.run_id == run_id, chunks.c.state == ChunkState.RUNNING.value)
            connection.execute(update(chunks).where(running, lost).values(_CLEAN))
            unfinished = chunks.c.state.in_((ChunkState.PENDING.value, ChunkState.RUNNING.value))
            query = select(func.count()).select_from(chunks).where(chunks.c.run_id == run_id, unfinished)
            return int(connection.execute(query).scalar_one())

    def staged(
        self,
        record: StageRecord,
        rows: dict[str, int],
        lease: Lease,
        inputs: Mapping[str, tuple[InputCount, ...]] | None = None,
    ) -> None:
        """A chunk that `rows` does not name wrote no row."""
        strangers = sorted(set(rows) - set(record.chunk_ids))
        if strangers:
            raise StateConflict(f"rows were counted for chunks that are not in the commit: {', '.join(strangers[:5])}")
        with self._database.write() as connection:
            _fence(connection, record.run_id, lease)
            at = now(connection)
            mine = and_(_running(record.run_id, record.chunk_ids), chunks.c.token == record.token)
            outcome = {
                "state": ChunkState.STAGED.value,
                "version": record.version,
                "output_rows": 0,
                "finished_at": at,
                "error": "",
            }
            changed = connection.execute(update(chunks).where(mine).values(outcome)).rowcount
            _expect_all(changed, record.run_id, record.chunk_ids)
            read = inputs or {}
            told = [
                {"chunk": name, "rows": rows.get(name, 0), "read": read.get(name, ())}
                for name in record.chunk_ids
                if rows.get(name) or read.get(name)
            ]
            if told:
                one = and_(chunks.c.run_id == record.run_id, chunks.c.chunk_id == bindparam("chunk"))
                values: dict[str, Any] = {"output_rows": bindparam("rows"), "inputs": bindparam("read")}
                connection.execute(update(chunks).where(one).values(values), told)
            row = {
                **record.model_dump(),
                "chunk_ids": events.text(record.chunk_ids),
                "digest": record.digest.canonical().decode(),
            }
            connection.execute(stage_records.insert().values(row))

    def failed(self, run_id: str, chunk_ids: Sequence[str], error: str, lease: Lease) -> None:
        with self._database.write() as connection:
            _fence(connection, run_id, lease)
            told = events.storable(error)
            outcome = {"state": ChunkState.FAILED.value, "finished_at": now(connection), "error": told}
            changed = connection.execute(update(chunks).where(_running(run_id, chunk_ids)).values(outcome))
            _expect_all(changed.rowcount, run_id, chunk_ids)

    def hold(self, run_id: str, canary: Sequence[str], lease: Lease) -> None:
        with self._database.write() as connection:
            _fence(connection, run_id, lease)
            pending = and_(chunks.c.run_id == run_id, chunks.c.state == ChunkState.PENDING.value)
            others = update(chunks).where(pending, chunks.c.chunk_id.not_in(canary))
            connection.execute(others.values(state=ChunkState.HELD.value))
            events.append(connection, run_id, CHOSEN, {"chunks": list(canary)})

    def release(self, run_id: str, lease: Lease) -> int:
        with self._database.write() as connection:
            _fence(connection, run_id, lease)
            held = and_(chunks.c.run_id == run_id, chunks.c.state == ChunkState.HELD.value)
            return connection.execute(update(chunks).where(held).values(state=ChunkState.PENDING.value)).rowcount

    def reset(self, run_id: str, chunk_ids: Sequence[str], lease: Lease) -> None:
        wanted = sorted(set(chunk_ids))
        with self._database.write() as connection:
            _fence(connection, run_id, lease)
            changed = 0
            for start in range(0, len(wanted), _SLICE):
                these = and_(chunks.c.run_id == run_id, chunks.c.chunk_id.in_(wanted[start : start + _SLICE]))
                changed += connection.execute(update(chunks).where(these).values(_CLEAN)).rowcount
            if changed != len(wanted):
                raise UnknownName(
                    f"{run_id} does not have all of the chunks {', '.join(list(chunk_ids)[:5])}",
                    hint=f"list them with `backcast status {run_id}`",
                    run_id=run_id,
                )


def _claim(connection: Connection, run_id: str, lease: Lease, limit: int) -> list[Chunk]:
    pending = and_(chunks.c.run_id == run_id, chunks.c.state == ChunkState.PENDING.value)
    query = select(chunks.c.ordinal).where(pending).order_by(chunks.c.ordinal).limit(max(limit, 0))
    ordinals = list(connection.execute(query).scalars())
    if not ordinals:
        return []
    first = ordinals[0]
    last = max(ordinal for place, ordinal in enumerate(ordinals) if ordinal == first + place)
    claimed = {
        **_CLEAN,
        "state": ChunkState.RUNNING.value,
        "token": leases.next_token(connection),
        "lease": lease.token,
        "started_at": StoreNow(),
        "attempts": chunks.c.attempts + 1,
    }
    taken = update(chunks).where(pending, chunks.c.ordinal.between(first, last)).values(claimed)
    rows = connection.execute(taken.returning(*fields(chunks, Chunk))).mappings()
    return sorted((Chunk.model_validate(row) for row in rows), key=lambda chunk: chunk.ordinal)


def _fence(connection: Connection, run_id: str, lease: Lease) -> None:
    if lease.name != lease_name(run_id) and not lease.name.startswith(worker_lease_name(run_id, "")):
        raise StateConflict(f"the lease {lease.name} gives no right on {run_id}", run_id=run_id, lease=lease)
    leases.require(connection, run_id, lease.token, lease.name)


def _running(run_id: str, chunk_ids: Sequence[str]) -> ColumnElement[bool]:
    return and_(
        chunks.c.run_id == run_id,
        chunks.c.chunk_id.in_(chunk_ids),
        chunks.c.state == ChunkState.RUNNING.value,
    )


def _expect_all(changed: int, run_id: str, chunk_ids: Sequence[str]) -> None:
    if changed != len(set(chunk_ids)):
        raise StateConflict(
            f"{len(set(chunk_ids)) - changed} of {len(set(chunk_ids))} chunks of {run_id} are no longer this worker's",
            hint=f"the work is not lost for the run: whoever claimed them does it; see `backcast status {run_id}`",
            run_id=run_id,
        )
