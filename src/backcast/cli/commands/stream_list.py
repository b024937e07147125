from __future__ import annotations

from datetime import UTC, datetime

from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import screen_of


def stream_list(*, common: Common = DEFAULTS) -> None:
    """List the declared streams."""
    with opened(common) as control:
        found = control.stream_list()
    from backcast.cli.render.stream import render_streams

    screen_of(common).show(found, render_streams(found, datetime.now(UTC)))
