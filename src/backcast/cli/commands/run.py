from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from backcast.cli import detached
from backcast.cli.agreed import Confirmed, agreed
from backcast.cli.ending import exit_code, show_status
from backcast.cli.locate import find_project
from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.request import asked_canary
from backcast.cli.working import Working, screen_of, working
from backcast.errors import InvalidRequest, Refused

if TYPE_CHECKING:
    from backcast.model.canary import CanaryVerdict


def run(
    run_id: RunId,
    /,
    *,
    detach: Annotated[bool, Parameter(help="Start it in the background and return at once.")] = False,
    canary: Annotated[
        str | None,
        Parameter(help="Compute and validate these chunks first, then wait: a number, or names with commas."),
    ] = None,
    yes: Confirmed = False,
    common: Common = DEFAULTS,
) -> int:
    """Compute the chunks of a run on its hidden stage and validate them."""
    confirmed = agreed(common, screen_of(common), run_id, yes=yes)
    if confirmed is None:
        return 0
    if detach:
        if canary is not None:
            raise InvalidRequest("--canary and --detach exclude each other", hint="run the canary in the foreground")
        return _in_background(run_id, common, yes=confirmed)
    first = None if canary is None else asked_canary(canary).as_json()
    with working(common, "run") as work:
        answer = work.call("run", "staging", run_id=run_id, canary=first, yes=confirmed)

        from backcast.model.run import Run

        ended = Run.model_validate(answer)
        seen = _canary(common, ended.run_id)
        if seen is not None and not common.json:
            _show_diff(work, ended.run_id)
        show_status(common, work.screen, ended)
    if seen is None:
        return exit_code(ended.state)
    return Refused.exit_code if seen.outcome == "rejected" else 0


def _canary(common: Common, run_id: str) -> CanaryVerdict | None:
    """What was found about the chunks that went first, if the others wait."""
    with opened(common) as control:
        return control.status(run_id).canary


def _show_diff(work: Working, run_id: str) -> None:
    from backcast.cli.render.diff import render_diff
    from backcast.model.diff import Diff

    found = Diff.model_validate(work.call("diff", "comparing", run_id=run_id))
    work.screen.show(found, render_diff(found), "")


def _in_background(run_id: str, common: Common, *, yes: bool) -> int:
    from backcast.cli.render.run import render_detached

    with opened(common) as control:
        known = control.status(run_id).run
    started = detached.detach(find_project(common.project), common.profile, known.run_id, yes=yes)
    screen_of(common).show(started, render_detached(started.run_id, started.pid, started.log))
    return 0
