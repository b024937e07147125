"""Staging again what live rows reached: an amendment on record first, then a new stage with the other chunks on it.

The new stage starts at the head on which the live rows were found. Commits that no live row reached are carried over
with their tokens, so the ledger's records of them stay true; the chunks of all others are pending again.
"""

from __future__ import annotations

from collections.abc import Iterable

from backcast.errors import Drifted, ScopeChanged
from backcast.faults import point
from backcast.model.amendment import Amendment, amendments
from backcast.model.manifest import InputPin, Manifest
from backcast.model.partitions import ChunkFinder
from backcast.model.report import OnProgress, Progress
from backcast.model.run import Chunk, StageRecord
from backcast.model.stage import recorded_staged
from backcast.model.states import ChunkState, EffectState, RunState
from backcast.model.table import Carry, FileRef, Movement, Stage, StageCommit
from backcast.model.words import many
from backcast.ports import RunReader, Store
from backcast.run.job import RunJob, joined
from backcast.run.lease import HeldLease

ROUNDS = 3
"""How often one publish stages again before it gives up on a scope that live rows reach all the time."""


def is_under_way(runs: RunReader, run_id: str) -> bool:
    """Whether the run was amended and its new stage is not judged yet."""
    state = runs.run(run_id).state
    return state in (RunState.RUNNING, RunState.STAGED) and bool(amendments(runs.events(run_id)))


def given_up(run_id: str, refused: ScopeChanged) -> ScopeChanged:
    return ScopeChanged(
        f"staged again {ROUNDS} times, and each time more live rows arrived meanwhile: {refused.message}",
        hint=f"try again in a quieter moment: backcast publish {run_id}; or restate closed windows only",
        run=run_id,
    )


def amend(
    store: Store,
    run_id: str,
    lease: HeldLease,
    movement: Movement,
    inputs: tuple[InputPin, ...],
    on_progress: OnProgress,
) -> None:
    """Record the amendment and set the run back to running, in one transaction."""
    manifest, events = store.runs.manifest(run_id), store.runs.events(run_id)
    _same_tables(manifest, inputs)
    touched = touched_chunks(manifest, store.runs.chunks(run_id), store.runs.stage_records(run_id), movement.added)
    amendment = Amendment(
        amendment=len(amendments(events)) + 1,
        base=str(movement.head),
        touched=touched,
        carried_from=recorded_staged(events),
        arrived=tuple(file.path for file in movement.added),
        arrived_rows=sum(file.rows for file in movement.added),
        inputs=inputs,
    )
    chunks = f"{len(touched)} of {many(len(manifest.chunks), 'chunk')}"
    detail = f"{many(amendment.arrived_rows, 'live row')} arrived in scope: {chunks} staged again"
    point("restage.before-amend")
    store.runs.transition(
        store.runs.run(run_id), RunState.RUNNING, detail=detail, token=lease.check().token, **amendment.as_json()
    )
    point("restage.after-amend")
    on_progress(Progress(step="stage", message=detail))


def _same_tables(manifest: Manifest, inputs: tuple[InputPin, ...]) -> None:
    for was, now in zip(manifest.inputs, inputs, strict=True):
        if was.identity.uuid != now.identity.uuid:
            raise Drifted(f"input {was.name} is another table than the one that was planned", hint="plan again")


def touched_chunks(
    manifest: Manifest, chunks: list[Chunk], records: list[StageRecord], arrived: Iterable[FileRef]
) -> tuple[str, ...]:
    """Chunks that share a commit with one that a file arrived in, in order: a commit's digest cannot be divided.

    All of them when a file cannot be placed.
    """
    finder = ChunkFinder(manifest.chunks, manifest.target.identity)
    reached = {finder.chunk_of(file) for file in arrived}
    together = {each.token: each.chunk_ids for each in records}
    tokens = {chunk.token for chunk in chunks if chunk.chunk_id in reached}
    again = {chunk_id for token, chunk_ids in together.items() if token in tokens for chunk_id in chunk_ids}
    return tuple(chunk.chunk_id for chunk in chunks if None in reached or chunk.chunk_id in again | reached)


def bring_over(job: RunJob, stage: Stage, amendment: Amendment) -> None:
    """Carry what was not touched to the new stage and put the rest back to pending. Continues after a crash:
    what the stage holds already, and what was computed for it, is left alone.
    """
    history = job.target.history(stage)
    stale = not_on_stage(job.store.runs.chunks(job.run.run_id), history)
    touched = set(amendment.touched)
    kept = [chunk for chunk in stale if chunk.chunk_id not in touched]
    if kept:
        _carry(job, stage, amendment, kept)
    again = [chunk.chunk_id for chunk in stale if chunk.chunk_id in touched]
    if again:
        job.store.chunks.reset(job.run.run_id, again, job.lease.check())
    point("restage.after-reset")


def not_on_stage(chunks: Iterable[Chunk], history: tuple[StageCommit, ...]) -> list[Chunk]:
    """Staged chunks whose last writer on the stage is not the one that the ledger recorded."""
    last = {chunk_id: commit.token for commit in history for chunk_id in commit.chunk_ids}
    return [chunk for chunk in chunks if chunk.state is ChunkState.STAGED and last.get(chunk.chunk_id) != chunk.token]


def _carry(job: RunJob, stage: Stage, amendment: Amendment, kept: list[Chunk]) -> None:
    names = {chunk.chunk_id for chunk in kept}
    tokens = {chunk.token for chunk in kept}
    records = [each for each in job.store.runs.stage_records(job.run.run_id) if each.token in tokens]
    carry = Carry(
        source=amendment.carried_from,
        predicate=joined([plan for plan in job.manifest.chunks if plan.id in names]),
        commits=tuple((each.token, each.chunk_ids) for each in records),
    )
    job.lease.check()
    effect = job.store.effects.begin(
        job.run.run_id, "stage.carry", str(records[0].token), source=carry.source, chunks=sorted(names)
    )
    point("restage.after-carry-intent")
    job.target.carry(stage, carry)
    job.store.effects.end(effect, EffectState.LANDED)
    point("restage.after-carry-record")
