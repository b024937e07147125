from __future__ import annotations

from datetime import UTC, datetime

from backcast.cli import detached
from backcast.cli.locate import find_project
from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.working import screen_of


def status(run_id: RunId, /, *, common: Common = DEFAULTS) -> None:
    """Say where a run stands and what to type next."""
    with opened(common) as control:
        found = control.status(run_id)
    if found.holder is None and detached.is_working(find_project(common.project), found.run.run_id):
        # It holds the run's lease only once its Spark is up: who is told to start it now would be in its way.
        because = f"{found.run.state}: a detached process starts Spark for it"
        found = found.model_copy(update={"because": because, "next_command": f"backcast wait {found.run.run_id}"})
    from backcast.cli.render.status import render_status

    screen_of(common).show(found, render_status(found, datetime.now(UTC)))
