from __future__ import annotations

from backcast.cli.carry import Yes, carry_through, refuse_unless_asked
from backcast.cli.options import DEFAULTS, NO_REASON, NO_SCOPE, Common, PipelineName, ScopeOptions, WhyOptions
from backcast.cli.request import to_request
from backcast.cli.working import working


def backfill(
    pipeline: PipelineName,
    /,
    *,
    scope: ScopeOptions = NO_SCOPE,
    why: WhyOptions = NO_REASON,
    yes: Yes = False,
    common: Common = DEFAULTS,
) -> int:
    """Plan, run and publish in one go."""
    request = to_request(pipeline, scope, why)
    refuse_unless_asked("backfill", common, yes=yes)
    with working(common, "plan") as work:
        return carry_through(work, common, request.as_json(), yes=yes)
