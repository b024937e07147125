from __future__ import annotations

from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.working import screen_of


def kafka_handover(run_id: RunId, /, *, common: Common = DEFAULTS) -> None:
    """Say where a stream goes on after a bootstrap."""
    with opened(common) as control:
        found = control.hand_over(run_id)
    from backcast.cli.render.topic import render_hand_over

    screen_of(common).show(found, render_hand_over(found))
