"""Streams that are run here: where they stand, their newest batches, and what was asked of them."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, Table, delete, func, select, update

from backcast.errors import StateConflict
from backcast.model.live import KEPT_BATCHES, LiveBatch, LiveStep, LiveStream, Stop, stream_lease
from backcast.model.run import Lease
from backcast.store.engine import Database, now
from backcast.store.events import text
from backcast.store.leases import current
from backcast.store.schema import stream_batches, stream_steps, streams


class SqlStreams:
    """Implements the port `StreamStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def stream(self, name: str) -> LiveStream | None:
        with self._database.read() as connection:
            found = connection.execute(select(streams.c.document).where(streams.c.name == name)).scalar_one_or_none()
        return None if not found else LiveStream.model_validate_json(found)

    def batches(self, name: str, limit: int) -> list[LiveBatch]:
        newest_first = stream_batches.c.number.desc()
        query = select(stream_batches.c.document).where(stream_batches.c.stream == name).order_by(newest_first)
        with self._database.read() as connection:
            return [LiveBatch.model_validate_json(row) for row in connection.execute(query.limit(limit)).scalars()]

    def steps(self, name: str) -> list[LiveStep]:
        query = select(stream_steps).where(stream_steps.c.stream == name).order_by(stream_steps.c.number)
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
        return [LiveStep.model_validate({**row, "data": json.loads(row["data"])}) for row in rows]

    def asked(self, name: str) -> Stop | None:
        with self._database.read() as connection:
            found = connection.execute(select(streams.c.asked).where(streams.c.name == name)).scalar_one_or_none()
        return Stop(found) if found else None

    def save(self, stream: LiveStream, lease: Lease) -> None:
        with self._database.write() as connection:
            _require(connection, stream.name, lease)
            _put(connection, stream.name, {"document": text(stream.as_json())})

    def ask(self, name: str, how: Stop) -> None:
        with self._database.write() as connection:
            _put(connection, name, {"asked": how.value})

    def record(self, batch: LiveBatch, lease: Lease) -> None:
        """More about a batch leaves it in its place; begun anew, it is the newest. No host's clock decides on that."""
        with self._database.write() as connection:
            _require(connection, batch.stream, lease)
            table, values = stream_batches, {"document": text(batch.as_json())}
            same = (table.c.stream == batch.stream, table.c.query_id == batch.query_id, table.c.batch == batch.batch)
            if connection.execute(update(table).where(*same, table.c.at == batch.at).values(values)).rowcount:
                return
            key = {"stream": batch.stream, "query_id": batch.query_id, "batch": batch.batch}
            number = _next_number(connection, table, batch.stream)
            connection.execute(delete(table).where(*same))
            connection.execute(table.insert().values({**key, **values, "at": batch.at, "number": number}))
            _prune(connection, batch.stream)

    def step(self, name: str, what: str, **data: Any) -> None:
        with self._database.write() as connection:
            number = _next_number(connection, stream_steps, name)
            row = {"stream": name, "number": number, "at": now(connection), "name": what, "data": text(data)}
            connection.execute(stream_steps.insert().values(row))


def _put(connection: Connection, name: str, values: dict[str, str]) -> None:
    if not connection.execute(update(streams).where(streams.c.name == name).values(values)).rowcount:
        connection.execute(streams.insert().values({"name": name, "document": "", "asked": "", **values}))


def _next_number(connection: Connection, table: Table, name: str) -> int:
    """One more than any of that stream: the store has one writer at a time."""
    last = select(func.max(table.c.number)).where(table.c.stream == name)
    return (connection.execute(last).scalar_one() or 0) + 1


def _prune(connection: Connection, name: str) -> None:
    table = stream_batches
    oldest = select(table.c.number).where(table.c.stream == name).order_by(table.c.number.desc())
    edge = connection.execute(oldest.offset(KEPT_BATCHES - 1).limit(1)).scalar_one_or_none()
    if edge is not None:
        connection.execute(delete(table).where(table.c.stream == name, table.c.number < edge))


def _require(connection: Connection, name: str, lease: Lease) -> None:
    """Fence off everyone but the process that runs the stream, or that mends it meanwhile."""
    held = current(connection, stream_lease(name))
    if held is None or held.token != lease.token:
        raise StateConflict(
            f"the lease on stream {name} was lost: another process may be running it",
            hint=f"backcast stream status {name}",
            stream=name,
        )
