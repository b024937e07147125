"""Step 2: manifest -> stage. Chunks are claimed, computed and written to the branch; each commit is recorded.

A killed run continues here: chunks that were never recorded are computed again, which is harmless because a chunk
replaces its own part of the stage. At the end the stage's own history must tell the same story as the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping

from backcast.errors import (
    BackcastError,
    ChunkFailed,
    Failed,
    LeaseHeld,
    OutcomeUnknown,
    SparkFailed,
    StateConflict,
    Unavailable,
)
from backcast.faults import point
from backcast.model.amendment import amendments
from backcast.model.manifest import ChunkPlan, Manifest
from backcast.model.partitions import rows_by_chunk
from backcast.model.report import Progress
from backcast.model.run import Chunk, Run, StageRecord
from backcast.model.scope import Predicate
from backcast.model.stage import recorded_stage
from backcast.model.states import ChunkState, EffectState, RunState
from backcast.model.table import Stage, StageCommit, StageWrite
from backcast.run.job import RunJob, joined
from backcast.run.restage import bring_over, not_on_stage

_RECONCILE_ROUNDS = 3


def stage_run(job: RunJob) -> Run:
    """Bring a RUNNING run to STAGED, or to FAILED with every chunk's outcome on record."""
    events = job.store.runs.events(job.run.run_id)
    stage, amended = recorded_stage(job.run.run_id, events), amendments(events)
    _open_stage(job, stage)
    job.store.chunks.begin_attempt(job.run.run_id)
    if amended:
        bring_over(job, stage, amended[-1])
    _report(job, "computing")
    for _ in range(_RECONCILE_ROUNDS):
        _stage_pending(job, stage)
        failed = [chunk for chunk in job.store.runs.chunks(job.run.run_id) if chunk.state is ChunkState.FAILED]
        if failed:
            return _end_failed(job, failed)
        point("run.before-reconcile")
        history = job.target.history(stage)
        strayed = _strayed(job, history)
        if not strayed:
            return _end_staged(job, history)
        job.store.runs.record(job.run.run_id, "chunks.strayed", chunks=strayed)
        job.store.chunks.reset(job.run.run_id, strayed)
    raise Failed(
        "another process keeps writing to this run's stage",
        hint=f"find and stop it, then: backcast run {job.run.run_id}",
        branch=stage.branch,
    )


def _open_stage(job: RunJob, stage: Stage) -> None:
    point("stage.before-open-intent")
    job.lease.check()
    effect = job.store.effects.begin(job.run.run_id, "stage.open", stage.branch, base=stage.base)
    point("stage.after-open-intent")
    job.target.open_stage(stage, job.manifest.scope.predicate)
    point("stage.after-open")
    job.store.effects.end(effect, EffectState.LANDED)
    point("stage.after-open-record")


def _stage_pending(job: RunJob, stage: Stage) -> None:
    """Claim and write until nothing is pending.

    A group that fails is tried again chunk by chunk, so that one bad chunk is alone.
    """
    plans = {chunk.id: chunk for chunk in job.manifest.chunks}
    group = 1 if job.manifest.scope.exact else job.manifest.settings.chunks_per_job or 1
    alone = 0
    while True:
        point("chunk.before-claim")
        _stop_if_cancelled(job)
        claimed = job.store.chunks.claim(job.run.run_id, job.lease.check(), 1 if alone else group)
        if not claimed:
            return
        point("chunk.after-claim")
        alone = max(0, alone - 1)
        try:
            _stage_group(job, stage, claimed, [plans[chunk.chunk_id] for chunk in claimed])
        except (LeaseHeld, StateConflict, SparkFailed, OutcomeUnknown, Unavailable):
            raise
        except BackcastError as error:
            names = [chunk.chunk_id for chunk in claimed]
            if len(claimed) > 1:
                job.store.chunks.reset(job.run.run_id, names)
                alone = len(claimed)
            else:
                job.store.chunks.failed(job.run.run_id, names, error.message, job.lease.check())
            job.store.runs.record(job.run.run_id, "chunks.failed", chunks=names, error=error.message)
        _report(job, f"chunk {claimed[-1].chunk_id}")


def _stop_if_cancelled(job: RunJob) -> None:
    state = job.store.runs.run(job.run.run_id).state
    if state is not RunState.RUNNING:
        raise StateConflict(f"run {job.run.run_id} became {state} while chunks were staged; this process stops")


def _stage_group(job: RunJob, stage: Stage, claimed: list[Chunk], plans: list[ChunkPlan]) -> None:
    started = job.clock.monotonic()
    token = claimed[0].token or 0
    predicate = joined(plans)
    rows, digest_of = job.engine.observed(job.compute(plans, predicate))
    write = StageWrite(tuple(plan.id for plan in plans), token, predicate, exact=job.manifest.scope.exact)
    job.lease.check()
    effect = job.store.effects.begin(job.run.run_id, "stage.write", str(token), chunks=list(write.chunk_ids))
    point("chunk.after-write-intent")
    commit = job.target.write(stage, write, rows)
    counts = _counts(job.manifest, commit, plans)
    digest = digest_of()
    if digest is None or digest.rows != sum(counts.values()):
        parts: Mapping[str, Predicate] = {"all": predicate}
        digest = job.engine.digests(job.target.read(commit.version, predicate), parts)["all"]
    record = StageRecord(
        run_id=job.run.run_id,
        token=token,
        version=commit.version,
        chunk_ids=write.chunk_ids,
        digest=digest,
        seconds=round(job.clock.monotonic() - started, 3),
    )
    job.store.chunks.staged(record, counts, job.lease.check())
    point("chunk.after-record")
    job.store.effects.end(effect, EffectState.LANDED, version=commit.version)


def _counts(manifest: Manifest, commit: StageCommit, plans: list[ChunkPlan]) -> dict[str, int]:
    """Rows per chunk from the committed files' metadata. An exact chunk is alone in its commit."""
    if len(plans) == 1:
        return {plans[0].id: commit.rows}
    return rows_by_chunk(commit.added, tuple(plans), manifest.target.identity)


def _strayed(job: RunJob, history: tuple[StageCommit, ...]) -> list[str]:
    """Chunks whose last writer on the stage is not the one the ledger recorded: a stale process wrote after it.

    With them all that share their commit: its digest is that of all its chunks.
    """
    chunks = job.store.runs.chunks(job.run.run_id)
    tokens = {chunk.token for chunk in not_on_stage(chunks, history)}
    return [chunk.chunk_id for chunk in chunks if chunk.token in tokens]


def _end_staged(job: RunJob, history: tuple[StageCommit, ...]) -> Run:
    """The staged version is the last of the history that was compared: whatever came after it was not."""
    _settle(job, history)
    point("run.before-staged")
    staged = history[-1].version
    run = job.store.runs.transition(job.run, RunState.STAGED, token=job.lease.check().token, staged=staged)
    point("run.after-staged")
    return run


def _settle(job: RunJob, history: tuple[StageCommit, ...]) -> None:
    """Give an outcome to what earlier attempts intended and could not record: the stage itself tells it."""
    versions = {str(commit.token): commit.version for commit in history}
    for effect in job.store.effects.open(job.run.run_id):
        if effect.name == "stage.open" or effect.key in versions:
            job.store.effects.end(effect, EffectState.LANDED, version=versions.get(effect.key))
        else:
            job.store.effects.end(effect, EffectState.NOT_LANDED, reason="the stage has no such commit")


def _end_failed(job: RunJob, failed: list[Chunk]) -> Run:
    detail = f"{len(failed)} of {len(job.manifest.chunks)} chunks failed; first {failed[0].chunk_id}: {failed[0].error}"
    job.store.runs.transition(job.run, RunState.FAILED, detail=detail, token=job.lease.check().token)
    raise ChunkFailed(
        detail,
        hint=f"mend the cause, then: backcast retry {job.run.run_id}",
        run=job.run.run_id,
        chunk=failed[0].chunk_id,
    )


def _report(job: RunJob, message: str) -> None:
    chunks = job.store.runs.chunks(job.run.run_id)
    records = job.store.runs.stage_records(job.run.run_id)
    job.on_progress(
        Progress(
            step="stage",
            message=message,
            done=sum(1 for chunk in chunks if chunk.state is ChunkState.STAGED),
            total=len(chunks),
            rows=sum(chunk.output_rows or 0 for chunk in chunks),
            seconds=sum(record.seconds for record in records),
        )
    )
