from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.ending import show_status
from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.request import told
from backcast.cli.working import screen_of

Role = Annotated[
    str | None, Parameter(name="--as", metavar="ROLE", help="In which of your roles; needed when you hold several.")
]


def approve(
    run_id: RunId,
    /,
    *,
    role: Role = None,
    comment: Annotated[str, Parameter(metavar="TEXT", help="Goes on record; needed to accept a review.")] = "",
    common: Common = DEFAULTS,
) -> None:
    """Agree to a planned run, or accept what validation noticed."""
    with opened(common) as control:
        run = control.approve(run_id, role=role, comment=told(comment))
    show_status(common, screen_of(common), run)
