"""What a run has spent of its budget, and the end of a job that would spend more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from backcast.errors import BackcastError, LeaseHeld, OverBudget, StateConflict
from backcast.model.run import Event, StageRecord
from backcast.run.job import RunJob

FAILED_CHUNKS = "chunks.failed"


def seconds_spent(records: Iterable[StageRecord], events: Iterable[Event]) -> float:
    """Of all jobs of the run, those that failed or were stopped included."""
    failed = (float(event.data.get("seconds", 0)) for event in events if event.name == FAILED_CHUNKS)
    return sum(record.seconds for record in records) + sum(failed)


def stop_over_budget(job: RunJob) -> None:
    """Raises OverBudget once more is staged, or was spent, than the plan allows. All processes of the run count."""
    budget = job.manifest.budget
    if budget is None:
        return
    over = budget.exceeded(*_so_far(job))
    if over is not None:
        raise _over(job, over)


@contextmanager
def within_budget(job: RunJob) -> Iterator[None]:
    """Ends the Spark jobs inside, and raises OverBudget, when time or cost are used up before they are done.

    What other processes of the run spend meanwhile counts before the next job.
    """
    budget = job.manifest.budget
    if budget is None or not budget.limits_time:
        yield
        return
    rows, before = _so_far(job)
    started = job.clock.monotonic()

    def over() -> str | None:
        return budget.exceeded(rows, before + job.clock.monotonic() - started)

    with job.engine.cancelled_when(lambda: over() is not None) as was_cancelled:
        try:
            yield
        except (LeaseHeld, StateConflict):
            raise
        except BackcastError as error:
            told = over() if was_cancelled() else None
            if told is None:
                raise
            raise _over(job, told) from error


def _so_far(job: RunJob) -> tuple[int, float]:
    run_id, runs = job.run.run_id, job.store.runs
    rows = sum(chunk.output_rows or 0 for chunk in runs.chunks(run_id))
    return rows, seconds_spent(runs.stage_records(run_id), runs.events(run_id))


def _over(job: RunJob, told: str) -> OverBudget:
    run_id = job.run.run_id
    hint = f"look at why, then: backcast cancel {run_id}, and plan again with a larger budget"
    return OverBudget(told, hint=hint, run=run_id)
