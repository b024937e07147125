"""Runs with a history, made without Spark: what the store holds after a run was staged, judged, published, undone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from backcast.model.digest import Digest
from backcast.model.manifest import Manifest
from backcast.model.run import Run, StageRecord, lease_name
from backcast.model.states import RunState
from backcast.ports import Store
from backcast.testing.samples import sample_holder, sample_manifest, sample_publication, sample_verdict

ROWS = 300
"""Of each chunk."""


def staged_run(store: Store, manifest: Manifest | None = None) -> Run:
    """Every chunk computed, in one job each."""
    runs, manifest = store.runs, manifest or sample_manifest()
    run = runs.create(manifest)
    run = runs.transition(run, RunState.APPROVED, detail="no approval needed")
    run = runs.transition(run, RunState.RUNNING, base=manifest.target.base)
    lease = store.leases.acquire(lease_name(run.run_id), sample_holder(), 600)
    for _ in manifest.chunks:
        (chunk,) = store.chunks.claim(run.run_id, lease, 1)
        assert chunk.token is not None
        record = StageRecord(
            run_id=run.run_id,
            token=chunk.token,
            version="77",
            chunk_ids=(chunk.chunk_id,),
            digest=Digest(rows=ROWS, high="12", low="34"),
            seconds=1.5,
        )
        store.chunks.staged(record, {chunk.chunk_id: ROWS}, lease)
    store.leases.release(lease)
    return runs.transition(run, RunState.STAGED, staged="77")


def accepted_run(store: Store, manifest: Manifest | None = None) -> Run:
    run = staged_run(store, manifest)
    store.runs.save_verdict(sample_verdict(run.run_id))
    return store.runs.transition(run, RunState.ACCEPTED)


def published_run(store: Store, manifest: Manifest | None = None, **changed: Any) -> Run:
    """`changed` are fields of the publication."""
    run = accepted_run(store, manifest)
    run = store.runs.transition(run, RunState.PUBLISHING, generation=1)
    at = {"published_at": run.created_at, "undo_until": run.created_at + timedelta(days=7)}
    publication = sample_publication(run.run_id).model_copy(update={**at, **changed})
    store.runs.save_publication(publication)
    return store.runs.transition(run, RunState.PUBLISHED, version=publication.version, generation=1)


def undone_run(store: Store, manifest: Manifest | None = None, **changed: Any) -> Run:
    """Published, and taken back."""
    run = published_run(store, manifest, **changed)
    run = store.runs.transition(run, RunState.UNDOING, generation=1)
    publication = store.runs.publications(run.run_id)[-1]
    told = {"undo_fence": "undo", "undo_version": f"{publication.version}9", "undone_at": run.updated_at}
    store.runs.save_publication(publication.model_copy(update=told))
    return store.runs.transition(run, RunState.UNDONE, version=told["undo_version"])
