"""Step 2: manifest -> stage, as the run's driver does it: open the stage, see every chunk staged, compare, end.

A killed run continues here: chunks that were never recorded are computed again, which is harmless because a chunk
replaces its own part of the stage. At the end the stage's own history must tell the same story as the ledger.
"""

from __future__ import annotations

from backcast.errors import ChunkFailed, Failed, OverBudget, QuarantineFull
from backcast.faults import point
from backcast.model.amendment import amendments
from backcast.model.need import OVER
from backcast.model.quarantine import FULL
from backcast.model.run import Chunk, Run
from backcast.model.stage import READY, is_ready, recorded_stage
from backcast.model.states import ChunkState, EffectState, RunState
from backcast.model.table import PublishMode, Stage, StageCommit
from backcast.run.chunks import report, stage_pending, stop_unless_running
from backcast.run.job import RunJob
from backcast.run.lease import living_workers
from backcast.run.restage import bring_over, not_on_stage
from backcast.run.spending import stop_over_budget

_RECONCILE_ROUNDS = 3
_POLL_SECONDS = 0.5


def stage_run(job: RunJob) -> Run:
    """Bring a RUNNING run to STAGED, or to FAILED with every chunk's outcome on record.

    With chunks held back it stays RUNNING: the others are a canary that a person looks at first.
    """
    events = job.store.runs.events(job.run.run_id)
    stage, amended = recorded_stage(job.run.run_id, events), amendments(events)
    _open_stage(job, stage)
    job.store.chunks.release_lost(job.run.run_id)
    if amended:
        bring_over(job, stage, amended[-1])
    if not is_ready(stage, events):
        job.store.runs.record(job.run.run_id, READY, branch=stage.branch)
    report(job, "computing")
    for _ in range(_RECONCILE_ROUNDS):
        try:
            _stage_all(job, stage)
            stop_over_budget(job)
        except (QuarantineFull, OverBudget) as error:
            why, token = {FULL if isinstance(error, QuarantineFull) else OVER: True}, job.lease.check().token
            job.store.runs.transition(
                job.run, RunState.FAILED, detail=f"{error.message}; {error.hint}", token=token, **why
            )
            raise
        chunks = job.store.runs.chunks(job.run.run_id)
        failed = [chunk for chunk in chunks if chunk.state is ChunkState.FAILED]
        if failed:
            return _end_failed(job, failed)
        point("run.before-reconcile")
        history = job.target.history(stage)
        strayed = _strayed(job, history)
        if not strayed:
            held = any(chunk.state is ChunkState.HELD for chunk in chunks)
            return job.run if held else _end_staged(job, history)
        job.store.runs.record(job.run.run_id, "chunks.strayed", chunks=strayed)
        job.store.chunks.reset(job.run.run_id, strayed, job.lease.check())
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
    appends = job.manifest.settings.publish_mode is PublishMode.APPEND
    job.target.open_stage(stage, None if appends else job.manifest.scope.predicate)
    point("stage.after-open")
    job.store.effects.end(effect, EffectState.LANDED)
    point("stage.after-open-record")


def _stage_all(job: RunJob, stage: Stage) -> None:
    """Until every chunk is staged or failed, whoever did it. What dead workers left is done here."""
    while True:
        stage_pending(job, stage)
        living_workers(job.store, job.run.run_id, job.ended)
        if not job.store.chunks.release_lost(job.run.run_id):
            return
        job.lease.check()
        stop_unless_running(job)
        job.clock.sleep(_POLL_SECONDS)
        report(job, "waiting for workers")


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
    rows = sum(chunk.output_rows or 0 for chunk in job.store.runs.chunks(job.run.run_id))
    run = job.store.runs.transition(job.run, RunState.STAGED, token=job.lease.check().token, staged=staged, rows=rows)
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
