"""Writes runs: each change with its event, in one transaction, by compare-and-set."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import Connection, select, update

from backcast.errors import InvalidRequest, StateConflict
from backcast.model.document import sha256
from backcast.model.evidence import PUBLICATION, VERDICT
from backcast.model.manifest import Manifest
from backcast.model.run import Publication, Run
from backcast.model.states import TRANSITIONS, ChunkState, RunState, allowed
from backcast.model.verdict import Verdict
from backcast.store import events, leases, reader, schema
from backcast.store.engine import now
from backcast.store.reader import SqlRunReader


class SqlRuns(SqlRunReader):
    """Implements the port `RunStore`. Writing takes whole run ids only."""

    def create(self, manifest: Manifest) -> Run:
        run_id, digest = manifest.run_id(), manifest.sha256()
        with self._database.write() as connection:
            query = select(schema.runs.c.manifest_sha256).where(schema.runs.c.run_id == run_id)
            recorded = connection.execute(query).scalar_one_or_none()
            if recorded is None:
                _insert(connection, manifest, run_id, digest)
            elif recorded != digest:
                raise StateConflict(
                    f"another plan is already recorded as {run_id}", hint="plan again to get a new id", run_id=run_id
                )
            return reader.find(connection, run_id)

    def transition(self, run: Run, to: RunState, *, detail: str = "", token: int | None = None, **data: Any) -> Run:
        table, detail = schema.runs, events.storable(detail)
        with self._database.write() as connection:
            _check(reader.find(connection, run.run_id), run, to)
            if token is not None:
                leases.require(connection, run.run_id, token)
            events.append(
                connection,
                run.run_id,
                f"state.{to.value}",
                {**data, "from": run.state.value, "to": to.value, "detail": detail},
            )
            changed = connection.execute(
                update(table)
                .where(table.c.run_id == run.run_id, table.c.state == run.state.value)
                .where(table.c.revision == run.revision)
                .values(state=to.value, revision=run.revision + 1, detail=detail, updated_at=now(connection))
            )
            after = reader.find(connection, run.run_id)
            if changed.rowcount != 1:
                raise _moved(after, run, to)
            return after

    def record(self, run_id: str, name: str, **data: Any) -> None:
        with self._database.write() as connection:
            events.append(connection, run_id, name, data)

    def save_verdict(self, verdict: Verdict) -> None:
        document = verdict.canonical()
        row = {"run_id": verdict.run_id, "document": document.decode()}
        told = {
            "document": sha256(document),
            "outcome": verdict.outcome.value,
            "staged": verdict.staged,
            "rows": verdict.rows,
            "failed": [check.name for check in verdict.checks if not check.passed],
        }
        with self._database.write() as connection:
            connection.execute(schema.verdicts.insert().values(row))
            events.append(connection, verdict.run_id, VERDICT, told)

    def save_publication(self, publication: Publication, *, token: int | None = None) -> None:
        table = schema.publications
        key = {"run_id": publication.run_id, "generation": publication.generation}
        document = publication.canonical().decode()
        told = {
            "document": sha256(document.encode()),
            "generation": publication.generation,
            "version": publication.version,
            "undo_version": publication.undo_version,
            "files_added": len(publication.added),
            "files_removed": len(publication.removed),
        }
        with self._database.write() as connection:
            if token is not None:
                leases.require(connection, publication.run_id, token)
            same = (table.c[name] == value for name, value in key.items())
            changed = connection.execute(update(table).where(*same).values(document=document))
            if changed.rowcount == 0:
                connection.execute(table.insert().values(**key, document=document))
            events.append(connection, publication.run_id, PUBLICATION, told)

    def mark_superseded(self, run_id: str, by: str | None) -> None:
        with self._database.write() as connection:
            events.append(connection, run_id, "run.superseded", {"by": by})
            values = {"superseded_by": by, "updated_at": now(connection)}
            connection.execute(update(schema.runs).where(schema.runs.c.run_id == run_id).values(values))


def _insert(connection: Connection, manifest: Manifest, run_id: str, digest: str) -> None:
    _check_chunks(manifest, run_id)
    at = now(connection)
    request = manifest.request
    run = Run(
        run_id=run_id,
        manifest_sha256=digest,
        pipeline=manifest.pipeline,
        dataset=manifest.target.dataset,
        table=manifest.target.identity.name,
        kind=request.kind.value,
        reason=request.reason,
        ticket=request.ticket,
        requested_by=request.requested_by,
        state=RunState.PLANNED,
        revision=1,
        created_at=at,
        updated_at=at,
    )
    row = {**run.model_dump(), "state": run.state.value, "last_event": 0, "last_event_sha256": schema.NO_EVENT}
    document = {"sha256": digest, "document": manifest.canonical().decode()}
    pending = [
        {
            "run_id": run_id,
            "chunk_id": chunk.id,
            "ordinal": ordinal,
            "state": ChunkState.PENDING.value,
            "attempts": 0,
            "error": "",
        }
        for ordinal, chunk in enumerate(manifest.chunks)
    ]
    connection.execute(schema.manifests.insert().values(document))
    connection.execute(schema.runs.insert().values(row))
    if pending:
        connection.execute(schema.chunks.insert(), pending)
    data = {"from": None, "to": run.state.value, "detail": "", "manifest": digest, "chunks": len(pending)}
    events.append(connection, run_id, f"state.{run.state.value}", data)


def _check_chunks(manifest: Manifest, run_id: str) -> None:
    twice = [name for name, count in Counter(chunk.id for chunk in manifest.chunks).items() if count > 1]
    if twice:
        raise InvalidRequest(
            f"the plan {run_id} names a chunk twice: {', '.join(twice[:5])}",
            hint="a chunk is known by its name alone; plan again with another grain",
            run_id=run_id,
        )


def _check(current: Run, seen: Run, to: RunState) -> None:
    if (current.state, current.revision) != (seen.state, seen.revision):
        raise _moved(current, seen, to)
    if not allowed(current.state, to):
        following = sorted(state.value for state in TRANSITIONS[current.state])
        raise StateConflict(
            f"{current.run_id} is {current.state.value} and cannot become {to.value}",
            hint=f"from here it can only become {' or '.join(following)}" if following else "this run has ended",
            run_id=current.run_id,
            state=current.state.value,
            to=to.value,
        )


def _moved(current: Run, seen: Run, to: RunState) -> StateConflict:
    return StateConflict(
        f"{current.run_id} is {current.state.value} now, no longer {seen.state.value} as when it was read: "
        f"it was not made {to.value}",
        hint=f"look at it with `backcast status {current.run_id}` and decide again",
        run_id=current.run_id,
        state=current.state.value,
        to=to.value,
    )
