from __future__ import annotations

from backcast.cli.options import (
    DEFAULTS,
    NO_LIMITS,
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


def estimate(
    pipeline: PipelineName | None = None,
    /,
    *,
    request: RequestFile = None,
    scope: ScopeOptions = NO_SCOPE,
    limits: LimitOptions = NO_LIMITS,
    common: Common = DEFAULTS,
) -> None:
    """Say how many rows, how long and for how much money."""
    asked = asked_request(pipeline, request, scope, WhyOptions(), limits)
    with working(common, "plan", dry=True) as work:
        answer = work.call("plan", "estimating", request=asked.as_json(), record=False)

        from backcast.cli.render.estimate import render_estimate
        from backcast.model.report import Plan

        planned = Plan.model_validate(answer)
        work.screen.show(planned.manifest.estimate, render_estimate(planned))
