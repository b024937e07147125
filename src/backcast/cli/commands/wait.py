from __future__ import annotations

import time
from typing import Annotated

from cyclopts import Parameter

from backcast.cli import detached
from backcast.cli.ending import exit_code, show_status
from backcast.cli.locate import find_project
from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.working import screen_of
from backcast.errors import Failed

_POLL_SECONDS = 0.5


def wait(
    run_id: RunId,
    /,
    *,
    timeout: Annotated[
        float | None, Parameter(metavar="SECONDS", help="Give up after this many seconds, with exit code 5.")
    ] = None,
    common: Common = DEFAULTS,
) -> int:
    """Wait until a run is done or needs a person; the exit code tells which."""
    project = find_project(common.project)
    deadline = None if timeout is None else time.monotonic() + timeout
    with opened(common) as control:
        known = control.status(run_id).run.run_id
        # A run that was just detached is still `planned`: without this it would seem to need a person.
        while detached.is_working(project, known):
            if deadline is not None and time.monotonic() > deadline:
                raise Failed(f"the time is up and run {known} is still at work", hint=f"backcast wait {known}")
            time.sleep(_POLL_SECONDS)
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        ended = control.wait(known, timeout=left)
    show_status(common, screen_of(common), ended)
    failure = detached.failure(project, known, ended.updated_at.timestamp())
    if failure is not None and not common.json:
        raise failure
    return failure.exit_code if failure is not None else exit_code(ended.state)
