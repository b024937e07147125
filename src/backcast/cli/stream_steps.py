"""What commands have in common that restate a stream's table in several steps, and start the stream again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from backcast.cli.commands.stream_start import started_in_background
from backcast.cli.locate import find_project
from backcast.cli.options import Common, ScopeOptions, WhyOptions
from backcast.cli.request import to_request
from backcast.errors import BackcastError, Refused, StateConflict

if TYPE_CHECKING:
    from backcast.cli.screen import Screen
    from backcast.cli.working import Working
    from backcast.control import ControlPlane
    from backcast.model.report import Plan
    from backcast.model.request import Request


def tell_done(screen: Screen, steps: tuple[str, ...]) -> None:
    """What an earlier command has done of it."""
    if steps:
        screen.note(f"goes on behind: {', '.join(each.partition('.')[2] for each in steps)}")


def left(name: str, instead: str, *, stands: bool) -> str:
    """What is to be done about one that did not come to its end; `instead`: what giving it up does."""
    stopped = f"stream {name} stays stopped meanwhile; " if stands else ""
    return f"{stopped}the same command goes on, and with --give-up it {instead}"


@contextmanager
def telling(rest: Callable[[], str]) -> Iterator[None]:
    """Whatever ends what is done inside also says what stands then, and how to go on: errors, and Ctrl-C."""
    try:
        yield
    except (BackcastError, KeyboardInterrupt) as error:
        vars(error)["hint"] = "; ".join(filter(None, (getattr(error, "hint", ""), rest())))
        raise


def request_of(pipeline: str, scope: ScopeOptions, why: WhyOptions, otherwise: str) -> Request:
    """With a reason, whoever types it gives one or not."""
    return to_request(pipeline, scope, replace(why, reason=why.reason or otherwise))


def planned(work: Working, request: Request, *, record: bool = True) -> Plan:
    """Shown when it is on record."""
    from backcast.cli.render.plan import render_plan
    from backcast.model.report import Plan

    plan = Plan.model_validate(work.call("plan", "planning", request=request.as_json(), record=record))
    if record and not work.screen.json:
        work.screen.show(plan, render_plan(plan, next_step=False))
    return plan


def answered(screen: Screen, question: str) -> bool:
    screen.err.print(f"{question} [y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _nothing() -> None:
    """Nobody has anything to ask."""


def publish_run(work: Working, run_id: str, before_publish: Callable[[], None] = _nothing) -> None:
    """Run it and publish it, as far as that has not been done."""
    from backcast.model.run import Run
    from backcast.model.states import RunState

    try:
        ended = Run.model_validate(work.call("run", "staging", run_id=run_id, yes=True, hold=True))
        state, detail = ended.state, ended.detail
    except StateConflict:
        # A command that died may have published it.
        state, detail = RunState.ACCEPTED, ""
    if state is not RunState.ACCEPTED:
        anew = f"; backcast cancel {run_id}, and another is planned" if state is RunState.REJECTED else ""
        why = f": {detail}" if detail else ""
        raise Refused(f"run {run_id} is {state}{why}", hint=f"backcast status {run_id}{anew}")
    before_publish()
    work.call("publish", "publishing", run_id=run_id, yes=True)


def restarted(control: ControlPlane, name: str, common: Common) -> None:
    """A stream that was stopped for it runs again. Raises what kept it from running."""
    if not control.stream_status(name).alive:
        with telling(lambda: f"the same command goes on; backcast stream status {name} says whether it runs"):
            started_in_background(control, find_project(common.project), common.profile, name)
