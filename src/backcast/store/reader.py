"""Answers questions about runs. Never writes, never waits for a writer."""

from __future__ import annotations

import difflib
import json
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, select

from backcast.errors import Unavailable, UnknownName
from backcast.model.document import sha256
from backcast.model.manifest import Manifest
from backcast.model.run import Chunk, Event, Lease, Publication, Run, StageRecord
from backcast.model.states import OPEN_STATES
from backcast.model.verdict import Verdict
from backcast.store import events as history
from backcast.store import leases as lease_rows
from backcast.store import schema
from backcast.store.engine import Database, fields

_RECENT = 500
"""How many runs are searched for a name that looks like the one that was typed."""


class SqlRunReader:
    """Implements the port `RunReader`. Each method accepts a unique prefix of a run id and raises UnknownName."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def run(self, run_id: str) -> Run:
        with self._database.read() as connection:
            return find(connection, run_id)

    def runs(self, *, dataset: str | None = None, open_only: bool = False, limit: int = 50) -> list[Run]:
        with self._database.read() as connection:
            rows = connection.execute(listing(dataset=dataset, open_only=open_only, limit=limit))
            return [_run(row) for row in rows.mappings()]

    def manifest(self, run_id: str) -> Manifest:
        return Manifest.model_validate_json(self.manifest_text(run_id))

    def manifest_text(self, run_id: str) -> str:
        """Refuses a manifest whose bytes no longer have the hash that it is filed under."""
        with self._database.read() as connection:
            run = find(connection, run_id)
            query = select(schema.manifests.c.document).where(schema.manifests.c.sha256 == run.manifest_sha256)
            document = str(connection.execute(query).scalar_one())
            if sha256(document.encode()) != run.manifest_sha256:
                raise Unavailable(
                    f"the manifest of {run.run_id} was changed in the store {self._database.where}",
                    hint="restore the store from a backup, or plan again; the table was not touched",
                    run_id=run.run_id,
                )
            return document

    def chunks(self, run_id: str) -> list[Chunk]:
        table = schema.chunks
        with self._database.read() as connection:
            query = select(*fields(table, Chunk)).where(table.c.run_id == find(connection, run_id).run_id)
            rows = connection.execute(query.order_by(table.c.ordinal)).mappings()
            return [Chunk.model_validate(row) for row in rows]

    def events(self, run_id: str, after: int = 0) -> list[Event]:
        with self._database.read() as connection:
            return history.read(connection, find(connection, run_id).run_id, after)

    def verify_events(self, run_id: str) -> int | None:
        """The number of the first event that does not fit the chain; None when every byte is as it was written."""
        with self._database.read() as connection:
            return history.first_broken(connection, find(connection, run_id).run_id)

    def verdict(self, run_id: str) -> Verdict | None:
        table = schema.verdicts
        with self._database.read() as connection:
            query = select(table.c.document).where(table.c.run_id == find(connection, run_id).run_id)
            document = connection.execute(query.order_by(table.c.verdict_id.desc()).limit(1)).scalar_one_or_none()
            return None if document is None else Verdict.model_validate_json(document)

    def verdicts(self, run_id: str) -> list[Verdict]:
        """Every verdict of the run, oldest first."""
        table = schema.verdicts
        with self._database.read() as connection:
            query = select(table.c.document).where(table.c.run_id == find(connection, run_id).run_id)
            documents = connection.execute(query.order_by(table.c.verdict_id)).scalars()
            return [Verdict.model_validate_json(document) for document in documents]

    def publications(self, run_id: str) -> list[Publication]:
        table = schema.publications
        with self._database.read() as connection:
            query = select(table.c.document).where(table.c.run_id == find(connection, run_id).run_id)
            documents = connection.execute(query.order_by(table.c.generation)).scalars()
            return [Publication.model_validate_json(document) for document in documents]

    def stage_records(self, run_id: str) -> list[StageRecord]:
        """Every commit that was ever recorded, oldest claim first, also those whose chunks were staged again later."""
        table = schema.stage_records
        with self._database.read() as connection:
            query = select(*fields(table, StageRecord)).where(table.c.run_id == find(connection, run_id).run_id)
            rows = connection.execute(query.order_by(table.c.token, table.c.version)).mappings()
            return [_stage_record(row) for row in rows]

    def holder(self, lease: str) -> Lease | None:
        with self._database.read() as connection:
            return lease_rows.current(connection, lease)

    def workers(self, run_id: str) -> list[Lease]:
        with self._database.read() as connection:
            return lease_rows.of_workers(connection, find(connection, run_id).run_id)


def find(connection: Connection, name: str) -> Run:
    """The run of that id, or the only one whose id begins so."""
    table = schema.runs
    columns = fields(table, Run)
    exact = connection.execute(select(*columns).where(table.c.run_id == name)).mappings().one_or_none()
    if exact is not None:
        return _run(exact)
    prefixed = (table.c.run_id >= name, table.c.run_id <= f"{name}\U0010ffff")
    query = select(*columns).where(*prefixed).order_by(table.c.run_id).limit(6)
    rows = connection.execute(query).mappings().all() if name else []
    if len(rows) == 1:
        return _run(rows[0])
    raise _unknown(connection, name, [row["run_id"] for row in rows])


def listing(*, dataset: str | None, open_only: bool, limit: int) -> Select[Any]:
    """Newest first, from one index."""
    table = schema.runs
    query = select(*fields(table, Run)).order_by(table.c.created_at.desc(), table.c.run_id.desc()).limit(limit)
    if dataset is not None:
        query = query.where(table.c.dataset == dataset)
    if open_only:
        query = query.where(table.c.state.in_(sorted(state.value for state in OPEN_STATES)))
    return query


def _unknown(connection: Connection, name: str, matches: list[str]) -> UnknownName:
    if matches:
        message = f"more than one run id begins with {name!r}"
        hint = f"write more of it: {', '.join(matches)}"
    else:
        table = schema.runs
        recent = select(table.c.run_id).order_by(table.c.created_at.desc()).limit(_RECENT)
        ids = list(connection.execute(recent).scalars())
        matches = [each for each in ids if name and name in each][:5] or difflib.get_close_matches(name, ids, 5, 0.5)
        message = f"no run is called {name!r}"
        hint = f"did you mean {', '.join(matches)}?" if matches else "list runs with `backcast list`"
    return UnknownName(message, hint=hint, name=name, matches=matches)


def _run(row: RowMapping) -> Run:
    return Run.model_validate(row)


def _stage_record(row: RowMapping) -> StageRecord:
    documents = {name: json.loads(row[name]) for name in ("chunk_ids", "digest")}
    return StageRecord.model_validate({**row, **documents})
