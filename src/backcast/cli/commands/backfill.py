from __future__ import annotations

from backcast.cli.carry import Yes, carry_through, refuse_unless_asked
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


def backfill(
    pipeline: PipelineName | None = None,
    /,
    *,
    request: RequestFile = None,
    scope: ScopeOptions = NO_SCOPE,
    why: WhyOptions = NO_REASON,
    limits: LimitOptions = NO_LIMITS,
    yes: Yes = False,
    common: Common = DEFAULTS,
) -> int:
    """Plan, run and publish in one go."""
    asked = asked_request(pipeline, request, scope, why, limits)
    refuse_unless_asked("backfill", common, yes=yes)
    with working(common, "plan") as work:
        return carry_through(work, common, asked.as_json(), yes=yes)
