from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from backcast.cli.options import DEFAULTS, NO_FIX, Common, FixOptions
from backcast.cli.request import asked_why, check_window
from backcast.cli.working import working
from backcast.errors import PlanRefused, Refused


def gaps(
    dataset: Annotated[str, Parameter(help="Name of a dataset in backcast.yaml.")],
    /,
    *,
    start: Annotated[str | None, Parameter(name="--from", metavar="DAY", help="First day or time to look at.")] = None,
    end: Annotated[str | None, Parameter(name="--to", metavar="DAY", help="Where it ends, exclusive.")] = None,
    against: Annotated[
        str | None, Parameter(metavar="PIPELINE", help="Count what this pipeline would make of its sources now, too.")
    ] = None,
    calendar: Annotated[
        Literal["daily", "weekdays"] | None,
        Parameter(metavar="WEEK", help="Days that should have rows: daily or weekdays; default: as declared."),
    ] = None,
    fix: FixOptions = NO_FIX,
    common: Common = DEFAULTS,
) -> int:
    """Find what a dataset lacks, and plan exactly that."""
    check_window(start, end)
    with working(common, "gaps", dry=not fix.plan) as work:
        answer = work.call(
            "gaps",
            "looking",
            dataset=dataset,
            start=start,
            end=end,
            against=against,
            calendar=calendar,
            why=asked_why(fix),
            plan=fix.plan,
        )

        from backcast.cli.render.gaps import render_gaps
        from backcast.model.gaps import Gaps

        found = Gaps.model_validate(answer)
        work.screen.show(found, render_gaps(found, asked=fix.plan))
    if fix.plan and found.plans:
        return 0 if all(each.recorded for each in found.plans) else PlanRefused.exit_code
    return 0 if found.sound else Refused.exit_code
