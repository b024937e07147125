"""Chunks claimed, computed and written to the stage, by whoever takes part in a run: its driver or a worker."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

from backcast.errors import (
    BackcastError,
    LeaseHeld,
    OutcomeUnknown,
    OverBudget,
    QuarantineFull,
    SparkFailed,
    StateConflict,
    Unavailable,
)
from backcast.faults import point
from backcast.model.digest import EMPTY, Digest
from backcast.model.inputs import input_counts
from backcast.model.log import read_by_partition
from backcast.model.manifest import ChunkPlan
from backcast.model.partitions import rows_by_chunk
from backcast.model.report import Progress
from backcast.model.run import Chunk, StageRecord
from backcast.model.scope import EVERYTHING
from backcast.model.states import ChunkState, EffectState, RunState
from backcast.model.table import PublishMode, Stage, StageCommit, StageWrite
from backcast.model.throttle import Work
from backcast.run.job import RunJob, joined
from backcast.run.proving import prove
from backcast.run.spending import FAILED_CHUNKS, stop_over_budget, within_budget
from backcast.run.turn import turn


def stage_pending(job: RunJob, stage: Stage, as_long_as: Callable[[], bool] = lambda: True) -> None:
    """Claim and write until nothing is pending, or that no longer holds.

    A group that fails is tried again in halves, until a bad chunk is alone; what goes well lets groups grow again.
    Raises QuarantineFull and OverBudget when the run may not go on.
    """
    plans = {chunk.id: chunk for chunk in job.manifest.chunks}
    group = job.manifest.settings.chunks_per_job or 1
    limit = group
    while as_long_as():
        point("chunk.before-claim")
        if job.pace is not None and _any_pending(job):
            job.pace.before_a_job()
        stop_unless_running(job)
        stop_over_budget(job)
        throttle = None if job.pace is None else job.pace.in_force()
        claimed = job.store.chunks.claim(job.run.run_id, job.lease.check(), limit, throttle)
        if not claimed:
            return
        point("chunk.after-claim")
        names, started = [chunk.chunk_id for chunk in claimed], job.clock.monotonic()
        try:
            with within_budget(job):
                work = _stage_group(job, stage, claimed, [plans[name] for name in names])
            if job.pace is not None:
                job.pace.after_a_job(work)
            limit = min(group, limit * 2)
        except (LeaseHeld, StateConflict, SparkFailed, OutcomeUnknown, Unavailable):
            raise
        except QuarantineFull as error:
            # What is left would meet the same end, or be computed in vain.
            job.store.chunks.failed(job.run.run_id, names, error.message, job.lease.check())
            _tell_failure(job, names, error, started)
            raise
        except OverBudget as error:
            job.store.chunks.reset(job.run.run_id, names, job.lease.check())
            _tell_failure(job, names, error, started)
            raise
        except BackcastError as error:
            if job.pace is not None:
                job.pace.after_a_job(Work(0, 0.0))
            if len(claimed) > 1:
                job.store.chunks.reset(job.run.run_id, names, job.lease.check())
                limit = len(claimed) // 2
            else:
                limit = min(group, limit * 2)
                job.store.chunks.failed(job.run.run_id, names, error.message, job.lease.check())
            _tell_failure(job, names, error, started)
        report(job, f"chunk {claimed[-1].chunk_id}")


def _tell_failure(job: RunJob, names: list[str], error: BackcastError, started: float) -> None:
    """With the time that it took: a budget counts it, too."""
    seconds = round(job.clock.monotonic() - started, 3)
    job.store.runs.record(job.run.run_id, FAILED_CHUNKS, chunks=names, error=error.message, seconds=seconds)


def stop_unless_running(job: RunJob) -> None:
    state = job.store.runs.run(job.run.run_id).state
    if state is not RunState.RUNNING:
        raise StateConflict(f"run {job.run.run_id} became {state} while chunks were staged; this process stops")


def _stage_group(job: RunJob, stage: Stage, claimed: list[Chunk], plans: list[ChunkPlan]) -> Work:
    started = job.clock.monotonic()
    token = claimed[0].token or 0
    predicate = joined(plans)
    computed = job.compute(plans, predicate)
    rows, digest_of = job.engine.observed(computed.rows)
    chunk_ids, scope = tuple(plan.id for plan in plans), job.manifest.scope
    files = ceil(job.manifest.target.files * len(plans) / len(job.manifest.chunks)) or None
    settings = job.manifest.settings
    write = StageWrite(
        chunk_ids,
        token,
        predicate,
        exact=scope.exact,
        files=files,
        together=settings.rows_together,
        mode=settings.publish_mode,
        merging=settings.merging,
    )
    job.lease.check()
    effect = job.store.effects.begin(job.run.run_id, "stage.write", str(token), chunks=list(write.chunk_ids))
    point("chunk.after-write-intent")
    commit = job.target.write(stage, write, rows, lambda: turn(job))
    counts, digest = _measured(job, stage, commit, plans, digest_of())
    prove(job, computed, token, write.chunk_ids)
    record = StageRecord(
        run_id=job.run.run_id,
        token=token,
        version=commit.version,
        chunk_ids=write.chunk_ids,
        digest=digest,
        seconds=round(job.clock.monotonic() - started, 3),
    )
    read = {name: input_counts(job.compute.inputs, name) for name in write.chunk_ids}
    job.store.chunks.staged(record, counts, job.lease.check(), read)
    point("chunk.after-record")
    job.store.effects.end(effect, EffectState.LANDED, version=commit.version)
    size = sum(file.size for file in commit.added)
    return Work(record.digest.rows, record.seconds, _busiest(job, list(chunk_ids)), size)


def still_working(job: RunJob) -> None:
    """Raises when this process may not go on with the run."""
    job.lease.check()
    stop_unless_running(job)


def _busiest(job: RunJob, names: list[str]) -> int:
    """Offsets that these chunks read of the partition of a log of which they read most; an archive's are none of it."""
    most = 0
    for log in (pin.log for pin in job.compute.inputs if pin.log is not None):
        read = [log.slices[name].ranges for name in names if name in log.slices]
        from_log = read if log.archive is None else map(log.archive.rest, read)
        most = max(most, *read_by_partition(from_log).values(), 0)
    return most


def _any_pending(job: RunJob) -> bool:
    return any(chunk.state is ChunkState.PENDING for chunk in job.store.runs.chunks(job.run.run_id))


def _measured(
    job: RunJob, stage: Stage, commit: StageCommit, plans: list[ChunkPlan], observed: Digest | None
) -> tuple[dict[str, int], Digest]:
    """Rows of each chunk, and the digest of all, as observed while they were written. They are read once more when
    nothing was observed, or more than was committed because tasks were repeated.
    """
    mode = job.manifest.settings.publish_mode
    if mode is PublishMode.MERGE:
        # Its files also hold rows that were there before. And a merge that is repeated leaves what the first one, which
        # nobody recorded, has done: both together are what it wrote.
        mine = [each for each in job.target.history(stage) if each.chunk_ids == commit.chunk_ids]
        return {plans[0].id: sum(each.rows for each in mine)}, _written(job, commit.version, mine)
    if mode is PublishMode.APPEND:
        # The branch also shows rows that the run did not write: never what it observed.
        trusted = observed if observed and observed.rows == commit.rows else None
        return {plans[0].id: commit.rows}, trusted or _written(job, commit.version, [commit])
    read: dict[str, Digest] = {}
    if len(plans) == 1:
        counts = {plans[0].id: commit.rows}
    elif job.manifest.scope.exact:
        # Files that a scope cuts hold rows of several chunks.
        read = _read(job, commit, plans)
        counts = {name: digest.rows for name, digest in read.items()}
    else:
        counts = rows_by_chunk(commit.added, tuple(plans), job.manifest.target.identity)
    if observed is None or observed.rows != sum(counts.values()):
        observed = sum((read or _read(job, commit, plans)).values(), EMPTY)
    return counts, observed


def _written(job: RunJob, version: str, commits: list[StageCommit]) -> Digest:
    """Of what these commits added and the version still has."""
    paths = frozenset(file.path for each in commits for file in each.added)
    rows = job.target.read_files(version, paths, EVERYTHING)
    return job.engine.digests(rows, {"": EVERYTHING})[""]


def _read(job: RunJob, commit: StageCommit, plans: list[ChunkPlan]) -> dict[str, Digest]:
    rows = job.target.read(commit.version, joined(plans))
    return job.engine.digests(rows, {plan.id: plan.predicate for plan in plans})


def report(job: RunJob, message: str) -> None:
    """Seconds as if those that are at work now had shared it all along."""
    chunks = job.store.runs.chunks(job.run.run_id)
    records = job.store.runs.stage_records(job.run.run_id)
    at_work = 1 + len(job.store.runs.workers(job.run.run_id))
    job.on_progress(
        Progress(
            step="stage",
            message=message,
            done=sum(1 for chunk in chunks if chunk.state is ChunkState.STAGED),
            total=len(chunks),
            rows=sum(chunk.output_rows or 0 for chunk in chunks),
            seconds=sum(record.seconds for record in records) / at_work,
        )
    )
