"""Answers from the store alone: status, rates, waiting. No Spark, no user code."""

from __future__ import annotations

from datetime import datetime

from backcast.errors import Failed
from backcast.model.manifest import Manifest
from backcast.model.report import ChunkCounts, Status
from backcast.model.run import Publication, Run
from backcast.model.states import ChunkState, RunState
from backcast.plan.estimate import Rate
from backcast.ports import Clock, RunReader

_WORKING = (RunState.RUNNING, RunState.PUBLISHING, RunState.UNDOING, RunState.CANCELLING)
_LOOK_BACK = 20
_STALLED_SECONDS = 10.0


def status(reader: RunReader, run_id: str, now: datetime) -> Status:
    run = reader.run(run_id)
    chunks = reader.chunks(run.run_id)
    records = reader.stage_records(run.run_id)
    publications = reader.publications(run.run_id)
    counts = {state: sum(1 for chunk in chunks if chunk.state is state) for state in ChunkState}
    rows = sum(chunk.output_rows or 0 for chunk in chunks)
    seconds = sum(record.seconds for record in records)
    rate = sum(record.digest.rows for record in records) / seconds if seconds else None
    left = counts[ChunkState.PENDING] + counts[ChunkState.RUNNING]
    done = counts[ChunkState.STAGED]
    holder = reader.holder(f"run:{run.run_id}")
    newest = publications[-1] if publications else None
    command, because = advice(run, newest, working=holder is not None, now=now)
    return Status(
        run=run,
        manifest=reader.manifest(run.run_id),
        counts=ChunkCounts(**{state.value: number for state, number in counts.items()}),
        output_rows=rows,
        rows_per_second=rate,
        seconds_left=seconds / done * left if done and left and run.state is RunState.RUNNING else None,
        failed_chunks=tuple(chunk for chunk in chunks if chunk.state is ChunkState.FAILED),
        holder=holder,
        verdict=reader.verdict(run.run_id),
        publication=newest,
        undo_until=newest.undo_until if newest and not newest.released_at and run.state is RunState.PUBLISHED else None,
        next_command=command,
        because=because,
    )


def advice(run: Run, publication: Publication | None, *, working: bool, now: datetime) -> tuple[str, str]:
    """The command to type next, and one sentence about where the run stands."""
    name = run.run_id
    if run.state in _WORKING and working:
        return f"backcast wait {name}", f"a process is {run.state} it right now"
    match run.state:
        case RunState.PLANNED | RunState.APPROVED:
            return f"backcast run {name}", "planned; nothing has been computed and readers see no change"
        case RunState.RUNNING:
            return f"backcast run {name}", "its process is gone; the same command continues with the chunks that are left"
        case RunState.FAILED:
            return f"backcast retry {name}", run.detail or "some chunks failed; the others are kept"
        case RunState.STAGED:
            return f"backcast validate {name}", "every chunk is staged; readers see no change yet"
        case RunState.ACCEPTED:
            return f"backcast diff {name}, then backcast publish {name}", run.detail or "validated and ready; readers see no change yet"
        case RunState.REJECTED:
            return f"backcast cancel {name}", f"rejected by validation, cannot be published: {run.detail}"
        case RunState.PUBLISHING:
            return f"backcast publish {name}", "a publish was interrupted; the same command looks at the table first, then finishes or repeats it"
        case RunState.PUBLISHED:
            if publication is not None and publication.released_at is None:
                return f"backcast undo {name}", run.detail or f"published; undo is guaranteed until {publication.undo_until:%Y-%m-%d %H:%M} UTC"
            return "", "published; its undo window ended"
        case RunState.SUPERSEDED:
            return "", f"superseded by {run.superseded_by}"
        case RunState.UNDOING:
            return f"backcast undo {name}", "an undo was interrupted; the same command looks at the table first, then finishes or repeats it"
        case RunState.UNDONE:
            return f"backcast publish {name}", "undone: readers see the old rows; it can be published again"
        case RunState.CANCELLING:
            return f"backcast cancel {name}", "being cancelled; the same command finishes it"
        case RunState.CANCELLED:
            return "", "cancelled; its stage is gone and readers never saw it"


def recorded_rate(reader: RunReader, pipeline: str) -> Rate | None:
    """Rows per second of recorded jobs of the pipeline: the slowest and the fastest of the newest runs."""
    rates = []
    for run in [each for each in reader.runs(limit=500) if each.pipeline == pipeline][:_LOOK_BACK]:
        rates += [each.digest.rows / each.seconds for each in reader.stage_records(run.run_id) if each.seconds > 0 and each.digest.rows]
    return Rate(slow=min(rates), fast=max(rates), jobs=len(rates)) if rates else None


def open_runs(reader: RunReader, table: str) -> tuple[tuple[Run, Manifest], ...]:
    """Runs on the table that may still change it."""
    return tuple((run, reader.manifest(run.run_id)) for run in reader.runs(open_only=True, limit=500) if run.table == table)


def wait(reader: RunReader, run_id: str, clock: Clock, timeout: float | None) -> Run:
    started = clock.monotonic()
    idle_since: float | None = None
    while True:
        run = reader.run(run_id)
        if run.state not in (*_WORKING, RunState.APPROVED, RunState.STAGED):
            return run
        now = clock.monotonic()
        idle_since = None if reader.holder(f"run:{run.run_id}") else idle_since or now
        if idle_since is not None and now - idle_since > _STALLED_SECONDS:
            command, because = advice(run, None, working=False, now=clock.now())
            raise Failed(f"run {run.run_id} is {run.state} and nobody works on it: {because}", hint=command)
        if timeout is not None and now - started > timeout:
            raise Failed(f"run {run.run_id} is still {run.state} after {timeout:.0f} s", hint=f"backcast status {run.run_id}")
        clock.sleep(0.5)
