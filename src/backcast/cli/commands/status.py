from __future__ import annotations

from datetime import UTC, datetime

from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.working import screen_of


def status(run_id: RunId, /, *, common: Common = DEFAULTS) -> None:
    """Say where a run stands and what to type next."""
    with opened(common) as control:
        found = control.status(run_id)
    from backcast.cli.render.status import render_status

    screen_of(common).show(found, render_status(found, datetime.now(UTC)))
