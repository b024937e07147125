from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli import detached
from backcast.cli.ending import exit_code, show_status
from backcast.cli.locate import find_project
from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.working import screen_of, working


def run(
    run_id: RunId,
    /,
    *,
    detach: Annotated[bool, Parameter(help="Start it in the background and return at once.")] = False,
    common: Common = DEFAULTS,
) -> int:
    """Compute the chunks of a run on its hidden stage and validate them."""
    if detach:
        return _in_background(run_id, common)
    with working(common, "run") as work:
        answer = work.call("run", "staging", run_id=run_id)

        from backcast.model.run import Run

        ended = Run.model_validate(answer)
        show_status(common, work.screen, ended)
    return exit_code(ended.state)


def _in_background(run_id: str, common: Common) -> int:
    from backcast.cli.render.run import render_detached

    with opened(common) as control:
        known = control.status(run_id).run
    started = detached.detach(find_project(common.project), common.profile, known.run_id)
    screen_of(common).show(started, render_detached(started.run_id, started.pid, started.log))
    return 0
