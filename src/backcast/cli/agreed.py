"""Before Spark is started for a run: has everybody agreed who must, and is it meant?"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from backcast.cli.opened import opened
from backcast.errors import InvalidRequest

if TYPE_CHECKING:
    from backcast.cli.options import Common
    from backcast.cli.screen import Screen

Confirmed = Annotated[bool, Parameter(name="--yes", help="Confirm it, where the policy wants that.")]


def agreed(common: Common, screen: Screen, run_id: str, *, yes: bool) -> bool | None:
    """Whether the run is confirmed; None when the person at the terminal says no.

    Raises NotApproved when somebody must agree first, InvalidRequest when nobody is there to be asked.
    """
    with opened(common) as control:
        asks = control.must_confirm(run_id)
    if yes or not asks:
        return yes
    if common.json or not sys.stdin.isatty():
        raise InvalidRequest(f"the policy wants run {run_id} to be confirmed, and here it cannot ask", hint="add --yes")
    screen.err.print(f"The policy wants {run_id} to be confirmed. Go on? [y/N] ", end="")
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    screen.note("nothing was changed")
    return None
