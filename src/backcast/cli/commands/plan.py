from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.options import (
    DEFAULTS,
    NO_LIMITS,
    NO_REASON,
    NO_SCOPE,
    Common,
    LimitOptions,
    PipelineName,
    RequestFile,
    ScopeOptions,
    WhyOptions,
)
from backcast.cli.request import asked_request
from backcast.cli.working import working
from backcast.errors import PlanRefused


def plan(
    pipeline: PipelineName | None = None,
    /,
    *,
    request: RequestFile = None,
    scope: ScopeOptions = NO_SCOPE,
    why: WhyOptions = NO_REASON,
    limits: LimitOptions = NO_LIMITS,
    dry_run: Annotated[bool, Parameter(help="Compute and print the plan, record nothing.")] = False,
    common: Common = DEFAULTS,
) -> int:
    """Show what a run would change, and record it; no table is touched."""
    asked = asked_request(pipeline, request, scope, why, limits)
    with working(common, "plan", dry=dry_run) as work:
        answer = work.call("plan", "planning", request=asked.as_json(), record=not dry_run)

        from backcast.cli.render.plan import render_plan
        from backcast.model.report import Plan

        planned = Plan.model_validate(answer)
        work.screen.show(planned, render_plan(planned))
    return PlanRefused.exit_code if planned.refused else 0
