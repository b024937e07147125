"""A worker stages chunks of a run that another process drives. It decides nothing about the run.

It can be killed at any moment: its chunks are pending again once its lease has ended, and what it commits after that
is a stray that the driver finds before the run counts as staged.
"""

from __future__ import annotations

from backcast.errors import StateConflict
from backcast.model.run import Run, lease_name
from backcast.model.stage import is_ready, recorded_stage
from backcast.model.states import RunState
from backcast.model.table import Stage
from backcast.run.chunks import report, stage_pending
from backcast.run.job import RunJob

TAKES_PART = (RunState.RUNNING, RunState.STAGED)
"""In the second there is only the verdict to wait for, and a driver to replace if it dies."""
_POLL_SECONDS = 0.5


def take_part(job: RunJob, stage: Stage) -> Run:
    """Until the run is judged or ended, works on another stage, or is driven by nobody. The run as it is then."""
    runs, run_id = job.store.runs, job.run.run_id
    report(job, "taking part")
    while True:
        run, events = runs.run(run_id), runs.events(run_id)
        if run.state not in TAKES_PART or not _is_driven(job) or recorded_stage(run_id, events) != stage:
            return run
        if run.state is RunState.RUNNING and is_ready(stage, events):
            _stage_what_is_pending(job, stage)
        job.lease.check()
        job.clock.sleep(_POLL_SECONDS)


def _is_driven(job: RunJob) -> bool:
    driver = job.store.runs.holder(lease_name(job.run.run_id))
    return driver is not None and not job.ended(driver.holder)


def _stage_what_is_pending(job: RunJob, stage: Stage) -> None:
    try:
        stage_pending(job, stage, as_long_as=lambda: _is_driven(job))
    except StateConflict:
        if job.store.runs.run(job.run.run_id).state is RunState.RUNNING:
            raise
