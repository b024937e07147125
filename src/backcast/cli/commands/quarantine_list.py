from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import screen_of
from backcast.errors import InvalidRequest


def quarantine_list(
    *,
    limit: Annotated[int, Parameter(help="Look at this many runs, the newest.", show_default=True)] = 50,
    common: Common = DEFAULTS,
) -> None:
    """List runs that set records aside."""
    if limit < 1:
        raise InvalidRequest(f"--limit must be at least 1, not {limit}")
    with opened(common) as control:
        found = control.quarantined(limit=limit)
    from backcast.cli.render.quarantine import render_quarantined

    screen_of(common).show(found, render_quarantined(found))
