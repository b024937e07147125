from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from cyclopts import Parameter

from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common, StreamName
from backcast.cli.working import screen_of
from backcast.errors import InvalidRequest


def stream_status(
    name: StreamName,
    /,
    *,
    batches: Annotated[int, Parameter(help="So many of the newest batches.", show_default=True)] = 5,
    common: Common = DEFAULTS,
) -> None:
    """Say where a stream stands: position, lag, batches."""
    if batches < 1:
        raise InvalidRequest(f"--batches must be at least 1, not {batches}")
    with opened(common) as control:
        found = control.stream_status(name, batches=batches)
    from backcast.cli.render.stream import render_stream

    screen_of(common).show(found, render_stream(found, datetime.now(UTC)))
