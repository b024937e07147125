from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.commands.approve import Role
from backcast.cli.ending import show_status
from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.request import told
from backcast.cli.working import screen_of


def reject(
    run_id: RunId,
    /,
    *,
    comment: Annotated[str, Parameter(metavar="TEXT", help="Why, for whoever asked for the run.")],
    role: Role = None,
    common: Common = DEFAULTS,
) -> None:
    """Say no to a run that has not started, or to one under review."""
    with opened(common) as control:
        run = control.reject(run_id, role=role, comment=told(comment))
    show_status(common, screen_of(common), run)
