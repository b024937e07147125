from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.options import DEFAULTS, NO_FIX, Common, FixOptions
from backcast.cli.request import asked_why, check_window
from backcast.cli.working import working
from backcast.errors import PlanRefused, Refused


def late(
    stream: Annotated[str, Parameter(help="Name of a stream in backcast.yaml.")],
    /,
    *,
    start: Annotated[str | None, Parameter(name="--from", metavar="DAY", help="First day or time to look at.")] = None,
    end: Annotated[str | None, Parameter(name="--to", metavar="DAY", help="Where it ends, exclusive.")] = None,
    fix: FixOptions = NO_FIX,
    common: Common = DEFAULTS,
) -> int:
    """Find what a stream left out of its table; plan just that."""
    check_window(start, end)
    with working(common, "late", dry=not fix.plan) as work:
        answer = work.call("late", "looking", stream=stream, start=start, end=end, why=asked_why(fix), plan=fix.plan)

        from backcast.cli.render.late import render_late
        from backcast.model.late import LateReport

        found = LateReport.model_validate(answer)
        work.screen.show(found, render_late(found, asked=fix.plan))
    if fix.plan and found.plans:
        return 0 if all(each.recorded for each in found.plans) else PlanRefused.exit_code
    return 0 if found.sound else Refused.exit_code
