"""From a request to a published run in one go: what `backfill` and `quarantine retry` do once they know what to ask."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from backcast.cli.ending import exit_code, show_status
from backcast.cli.options import Common
from backcast.errors import InvalidRequest, NotApproved, PlanRefused

if TYPE_CHECKING:
    from backcast.cli.working import Working
    from backcast.model.report import Plan

Yes = Annotated[bool, Parameter(help="Do not ask before running and publishing.")]


def refuse_unless_asked(command: str, common: Common, *, yes: bool) -> None:
    """Before anything is started: nobody is there who could agree."""
    if not yes and (common.json or not sys.stdin.isatty()):
        raise InvalidRequest(f"{command} asks before it changes a table, and here it cannot ask", hint="add --yes")


def carry_through(work: Working, common: Common, request: dict[str, Any], *, yes: bool, is_last: bool = True) -> int:
    """Plan, ask unless told not to, run and publish; the exit code of the first that stops.

    When it is not the last that a command does, machines are told of the end by what follows.
    """
    answer = work.call("plan", "planning", request=request, record=True)

    from backcast.model.report import Plan

    planned = Plan.model_validate(answer)
    _show(work, planned)
    if planned.refused:
        return PlanRefused.exit_code
    _refuse_unapproved(planned)
    if not yes and not _confirmed(work, planned):
        work.screen.note(f"the table is as it was; the plan is kept: backcast run {planned.run_id}")
        return 0
    return _carry_out(work, common, planned.run_id, is_last=is_last)


def _refuse_unapproved(planned: Plan) -> None:
    """In one go only where nobody else is asked: others need time to look."""
    roles = () if planned.manifest.approval is None else planned.manifest.approval.roles
    if roles:
        run_id = planned.run_id
        raise NotApproved(
            f"run {run_id} is planned, and {' and '.join(roles)} must agree before it runs",
            hint=f"backcast approve {run_id} --as {roles[0]}, then backcast run {run_id}",
            run=run_id,
        )


def _carry_out(work: Working, common: Common, run_id: str, *, is_last: bool) -> int:
    from backcast.model.run import Publication, Run
    from backcast.model.states import RunState

    ended = Run.model_validate(work.call("run", "staging", run_id=run_id, yes=True, hold=True))
    if ended.state is not RunState.ACCEPTED:
        show_status(common, work.screen, ended)
        return exit_code(ended.state)
    publication = Publication.model_validate(work.call("publish", "publishing", run_id=run_id, yes=True))
    if is_last or not work.screen.json:
        show_status(common, work.screen, publication)
    return 0


def _show(work: Working, planned: Plan) -> None:
    """For people always; for machines only when nothing else follows."""
    if work.screen.json and not planned.refused:
        return
    from backcast.cli.render.plan import render_plan

    work.screen.show(planned, render_plan(planned, next_step=False))


def _confirmed(work: Working, planned: Plan) -> bool:
    table = planned.manifest.target.identity.name
    work.screen.err.print(f"Run this and publish it to {table}? [y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
