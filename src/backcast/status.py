"""Answers from the store alone: status, rates, waiting. No Spark, no user code."""

from __future__ import annotations

from datetime import datetime

from backcast.errors import Failed, Refused
from backcast.model.amendment import Amendment, amendments
from backcast.model.canary import judged
from backcast.model.inputs import read_by
from backcast.model.manifest import Manifest
from backcast.model.need import is_over
from backcast.model.quarantine import is_full, quarantined
from backcast.model.replay import replayed
from backcast.model.report import ChunkCounts, Restaged, Status
from backcast.model.run import Event, Publication, Run, lease_name
from backcast.model.states import ChunkState, RunState
from backcast.model.throttled import throttled
from backcast.model.topic_report import HandOver
from backcast.model.watch import Watch, watch_of
from backcast.model.words import many
from backcast.plan.estimate import Rate, Record, middle
from backcast.ports import Clock, RunReader

_WORKING = (RunState.RUNNING, RunState.PUBLISHING, RunState.UNDOING, RunState.CANCELLING)
_BEFORE_VERDICT = (RunState.PLANNED, RunState.APPROVED, RunState.STAGED)
_COMPUTES = (RunState.PLANNED, RunState.APPROVED, RunState.RUNNING, RunState.FAILED)
_LETTERS = {
    ChunkState.PENDING: ".",
    ChunkState.HELD: ":",
    ChunkState.RUNNING: ">",
    ChunkState.STAGED: "#",
    ChunkState.FAILED: "x",
}
_STAGED_ALL = frozenset(
    {
        RunState.STAGED,
        RunState.REVIEW,
        RunState.ACCEPTED,
        RunState.REJECTED,
        RunState.PUBLISHED,
        RunState.SUPERSEDED,
        RunState.UNDONE,
    }
)
_LOOK_BACK = 20
_ALL = 100_000
_STALLED_SECONDS = 10.0


def status(reader: RunReader, run_id: str, now: datetime) -> Status:
    run = reader.run(run_id)
    chunks = reader.chunks(run.run_id)
    records = reader.stage_records(run.run_id)
    publications = reader.publications(run.run_id)
    counts = {state: sum(1 for chunk in chunks if chunk.state is state) for state in ChunkState}
    rows = sum(chunk.output_rows or 0 for chunk in chunks)
    workers = reader.workers(run.run_id)
    seconds = sum(record.seconds for record in records) / (1 + len(workers))
    rate = sum(record.digest.rows for record in records) / seconds if seconds else None
    left = counts[ChunkState.PENDING] + counts[ChunkState.RUNNING]
    done = counts[ChunkState.STAGED]
    holder = reader.holder(lease_name(run.run_id))
    newest = publications[-1] if publications else None
    events, manifest = reader.events(run.run_id), reader.manifest(run.run_id)
    command, because = advice(run, newest, working=holder is not None or bool(workers))
    seen = judged(events) if counts[ChunkState.HELD] else None
    if run.state is RunState.FAILED and (is_full(events) or is_over(events) or seen is not None):
        command = f"backcast cancel {run.run_id}"
        because = because if seen is None else f"{run.detail}; the other chunks were not computed"
    if run.state is RunState.RUNNING and seen is not None and holder is None:
        because = f"a canary of {many(len(seen.chunks), 'chunk')} is staged; the others wait for you to look at it"
    watch = _watch(run, manifest, newest, events)
    command, because = _after_publish(watch, now, command, because)
    return Status(
        run=run,
        manifest=manifest,
        counts=ChunkCounts(**{state.value: number for state, number in counts.items()}),
        strip="".join(_LETTERS[chunk.state] for chunk in chunks),
        output_rows=rows,
        inputs=read_by(chunks, manifest.inputs),
        rows_per_second=rate,
        seconds_left=seconds / done * left if done and left and run.state is RunState.RUNNING else None,
        failed_chunks=tuple(chunk for chunk in chunks if chunk.state is ChunkState.FAILED),
        holder=holder,
        workers=tuple(workers),
        restaged=_restaged(amendments(events)),
        canary=seen,
        watch=watch,
        replayed=replayed(events),
        throttled=throttled(run, manifest, events) if run.state in _COMPUTES else None,
        quarantined=sum(each.records for each in quarantined(run, events)),
        verdict=reader.verdict(run.run_id),
        publication=newest,
        undo_until=newest.undo_until if newest and not newest.released_at and run.state is RunState.PUBLISHED else None,
        next_command=command,
        because=because,
    )


def _watch(run: Run, manifest: Manifest, newest: Publication | None, events: list[Event]) -> Watch | None:
    if newest is None or run.state is not RunState.PUBLISHED:
        return None
    found = watch_of(manifest, newest, events)
    return found if found.until is not None or found.looks else None


def _after_publish(watch: Watch | None, now: datetime, command: str, because: str) -> tuple[str, str]:
    """As long as the declared time is not over the table is to be looked at; once a look failed, it is to be undone."""
    if watch is None:
        return command, because
    if watch.newest is not None and watch.failed:
        wrong = [check.name for check in watch.newest.wrong]
        return command, f"published, and the newest look at the table failed: {', '.join(wrong)}"
    is_over = watch.until is None or now >= watch.until
    return (command, because) if is_over else (f"backcast watch {watch.run_id}", because)


def _restaged(amended: tuple[Amendment, ...]) -> Restaged | None:
    if not amended:
        return None
    return Restaged(
        times=len(amended),
        chunks=len(amended[-1].touched),
        base=amended[-1].base,
        live_rows=sum(each.arrived_rows for each in amended),
    )


_ADVICE: dict[RunState, tuple[str, str]] = {
    RunState.PLANNED: ("backcast run {run}", "planned; nothing has been computed and readers see no change"),
    RunState.APPROVED: ("backcast run {run}", "approved; nothing has been computed and readers see no change"),
    RunState.RUNNING: ("backcast run {run}", "its process is gone; the same command continues with the chunks left"),
    RunState.FAILED: ("backcast retry {run}", "some chunks failed; the others are kept"),
    RunState.STAGED: ("backcast validate {run}", "every chunk is staged; readers see no change yet"),
    RunState.ACCEPTED: ("backcast publish {run}", "validated and ready; readers see no change yet"),
    RunState.REVIEW: (
        "backcast approve {run} --comment WHY",
        "a gate asks a person to look before it may be published; readers see no change yet",
    ),
    RunState.REJECTED: ("backcast cancel {run}", "rejected by validation; it cannot be published"),
    RunState.PUBLISHING: (
        "backcast publish {run}",
        "a publish was interrupted; the same command looks at the table first, then finishes or repeats it",
    ),
    RunState.PUBLISHED: ("backcast undo {run}", "published; readers see the new rows"),
    RunState.SUPERSEDED: ("", "a newer run took its place"),
    RunState.UNDOING: (
        "backcast undo {run}",
        "an undo was interrupted; the same command looks at the table first, then finishes or repeats it",
    ),
    RunState.UNDONE: ("", "undone: readers see the old rows; it can be published again"),
    RunState.CANCELLING: ("backcast cancel {run}", "being cancelled; the same command finishes it"),
    RunState.CANCELLED: ("", "cancelled; its stage is gone and readers never saw it"),
}
"""For each state that no process works on: what to type next, and where the run stands."""


def advice(run: Run, publication: Publication | None, *, working: bool) -> tuple[str, str]:
    """The command to type next, and one sentence about where the run stands."""
    if run.state in (*_WORKING, *_BEFORE_VERDICT) and working:
        return f"backcast wait {run.run_id}", f"{run.state}: a process works on it right now"
    if run.state is RunState.SUPERSEDED:
        return "", f"superseded by {run.superseded_by}"
    if run.state is RunState.PUBLISHED and publication is not None and publication.released_at is not None:
        return "", "published; its undo window ended"
    command, because = _ADVICE[run.state]
    return command.format(run=run.run_id), f"{because}: {run.detail}" if run.detail else because


def recorded_rate(reader: RunReader, pipeline: str) -> Rate | None:
    """Rows per second of recorded jobs of the pipeline: the slowest and the fastest of the newest runs."""
    rates = []
    for run in [each for each in reader.runs(limit=500) if each.pipeline == pipeline][:_LOOK_BACK]:
        rates += [
            each.digest.rows / each.seconds
            for each in reader.stage_records(run.run_id)
            if each.seconds > 0 and each.digest.rows
        ]
    return Rate(slow=min(rates), fast=max(rates), jobs=len(rates)) if rates else None


def recorded_hits(reader: RunReader, pipeline: str) -> Record | None:
    """How far runs of the pipeline that staged every chunk were from what was estimated of them."""
    rows, seconds = [], []
    for run in [each for each in reader.runs(limit=500) if each.pipeline == pipeline][:_LOOK_BACK]:
        if run.state not in _STAGED_ALL:
            continue
        estimate = reader.manifest(run.run_id).estimate
        records = reader.stage_records(run.run_id)
        if not records or not estimate.output_rows:
            continue
        rows.append(sum(chunk.output_rows or 0 for chunk in reader.chunks(run.run_id)) / estimate.output_rows)
        seconds.append(sum(each.seconds for each in records) / middle(estimate.seconds_low, estimate.seconds_high))
    if not rows:
        return None
    return Record(rows=(min(rows), max(rows)), seconds=(min(seconds), max(seconds)), runs=len(rows))


def open_runs(reader: RunReader, table: str) -> tuple[tuple[Run, Manifest], ...]:
    """Runs on the table that may still change it: all of them, however many plans were made and forgotten since."""
    return tuple(
        (run, reader.manifest(run.run_id)) for run in reader.runs(open_only=True, limit=_ALL) if run.table == table
    )


def hand_over(reader: RunReader, run_id: str) -> HandOver:
    """Raises Refused for a run that hands nothing over: it was no bootstrap, or was given up or taken back."""
    run = reader.run(run_id)
    pins = reader.manifest(run.run_id).inputs
    pin = next((each for each in pins if each.log is not None and each.log.hand_over is not None), None)
    if pin is None or pin.log is None:
        raise Refused(
            f"run {run.run_id} hands nothing over to a stream: it is no bootstrap of a topic",
            hint="plan a pipeline that reads the topic, or what its archive has, with --kind bootstrap",
        )
    if run.state in (RunState.CANCELLED, RunState.UNDONE):
        raise Refused(
            f"run {run.run_id} is {run.state}: a stream that starts there would miss all records before",
            hint="plan the bootstrap again",
        )
    return HandOver(
        run_id=run.run_id,
        state=run.state,
        source=pin.dataset,
        topic=pin.log.topic,
        starting_offsets={pin.log.topic: dict(sorted((pin.log.hand_over or {}).items()))},
    )


def waits_after_canary(reader: RunReader, run_id: str) -> bool:
    """Whether a canary was judged, the other chunks are held back, and nobody works on the run."""
    if reader.holder(lease_name(run_id)) is not None or judged(reader.events(run_id)) is None:
        return False
    return any(chunk.state is ChunkState.HELD for chunk in reader.chunks(run_id))


def wait(reader: RunReader, run_id: str, clock: Clock, timeout: float | None) -> Run:
    started = clock.monotonic()
    idle_since: float | None = None
    while True:
        run = reader.run(run_id)
        if run.state not in (*_WORKING, *_BEFORE_VERDICT):
            return run
        if run.state is RunState.RUNNING and waits_after_canary(reader, run.run_id):
            return run
        now = clock.monotonic()
        at_work = reader.holder(lease_name(run.run_id)) or reader.workers(run.run_id)
        idle_since = None if at_work else idle_since or now
        if idle_since is not None and now - idle_since > _STALLED_SECONDS:
            command, because = advice(run, None, working=False)
            raise Failed(f"run {run.run_id} is {run.state} and nobody works on it: {because}", hint=command)
        if timeout is not None and now - started > timeout:
            raise Failed(
                f"the time is up and run {run.run_id} is still {run.state}",
                hint=f"backcast status {run.run_id}",
            )
        clock.sleep(0.5)
