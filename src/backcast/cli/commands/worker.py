from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from backcast.cli.ending import exit_code, show_status
from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import Working, working
from backcast.errors import BackcastError, InvalidRequest, LeaseHeld, SparkFailed

if TYPE_CHECKING:
    from backcast.control import ControlPlane
    from backcast.model.run import Run

_POLL_SECONDS = 2.0


def worker(
    run_id: Annotated[str | None, Parameter(help="Run id; a unique beginning is enough. Without: any.")] = None,
    /,
    *,
    idle: Annotated[
        float | None,
        Parameter(metavar="SECONDS", help="Without a run: end after this long without work; default: never."),
    ] = None,
    common: Common = DEFAULTS,
) -> int:
    """Compute chunks of a run beside the process that drives it. Drives it when that process has died."""
    if idle is not None and idle < 0:
        raise InvalidRequest(f"--idle must be at least 0, not {idle:g}")
    with working(common, "worker") as work:
        if run_id is None:
            return _serve(common, work, idle)
        ended = _take_part(work, run_id)
        show_status(common, work.screen, ended)
    return exit_code(ended.state)


def _take_part(work: Working, run_id: str) -> Run:
    from backcast.model.run import Run

    return Run.model_validate(work.call("worker", f"taking part in {run_id}", run_id=run_id))


def _serve(common: Common, work: Working, idle: float | None) -> int:
    """Take part in whatever is running. A run that this machine cannot work on is left to the others."""
    served: list[Run] = []
    refused: set[str] = set()
    with opened(common) as control:
        work.screen.note("waiting for runs; Ctrl-C ends it")
        waiting_since = time.monotonic()
        while idle is None or time.monotonic() - waiting_since < idle:
            run = _running(control, refused)
            if run is None:
                time.sleep(_POLL_SECONDS)
                continue
            try:
                served.append(_take_part(work, run.run_id))
                work.screen.note(f"{run.run_id} is {served[-1].state}")
            except SparkFailed:
                # Without its Spark this process can work on nothing.
                raise
            except LeaseHeld as error:
                # It stood still for too long; the run may need it all the same.
                work.screen.note(f"{run.run_id}: {error.message}")
            except BackcastError as error:
                refused.add(run.run_id)
                work.screen.note(f"{run.run_id} is left to others: {error.message}")
            waiting_since = time.monotonic()
    if common.json:
        work.screen.write_json(served)
    return 0


def _running(control: ControlPlane, without: set[str]) -> Run | None:
    """The oldest run that is being computed."""
    from backcast.model.states import RunState

    running = [run for run in control.list(open_only=True, limit=500) if run.state is RunState.RUNNING]
    known = (run for run in reversed(running) if run.run_id not in without)
    # What a canary holds back waits for a person, not for us.
    return next((run for run in known if control.status(run.run_id).canary is None), None)
