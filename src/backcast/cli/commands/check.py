from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.options import DEFAULTS, Common
from backcast.cli.request import check_window
from backcast.cli.working import working
from backcast.errors import Refused


def check(
    dataset: Annotated[str, Parameter(help="Name of a dataset in backcast.yaml.")],
    /,
    *,
    start: Annotated[str | None, Parameter(name="--from", metavar="DAY", help="First day or time to look at.")] = None,
    end: Annotated[str | None, Parameter(name="--to", metavar="DAY", help="Where it ends, exclusive.")] = None,
    common: Common = DEFAULTS,
) -> int:
    """Find gaps and doubles in a dataset."""
    check_window(start, end)
    with working(common, "check") as work:
        answer = work.call("check", "looking", dataset=dataset, start=start, end=end)

        from backcast.cli.render.check import render_check
        from backcast.model.health import Health

        found = Health.model_validate(answer)
        work.screen.show(found, render_check(found))
    return 0 if found.sound else Refused.exit_code
