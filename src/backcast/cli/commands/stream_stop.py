from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from cyclopts import Parameter

from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common, StreamName
from backcast.cli.working import screen_of
from backcast.errors import InvalidRequest


def stream_stop(
    name: StreamName,
    /,
    *,
    force: Annotated[bool, Parameter(help="Interrupt the batch that is under way; the next start repeats it.")] = False,
    timeout: Annotated[
        float, Parameter(metavar="SECONDS", help="Give up waiting after this, with exit code 5.", show_default=True)
    ] = 300.0,
    common: Common = DEFAULTS,
) -> None:
    """Stop a stream behind the batch that is under way."""
    if timeout <= 0:
        raise InvalidRequest(f"--timeout must be more than 0, not {timeout:g}")
    screen = screen_of(common)
    with opened(common) as control:
        if control.stream_status(name).alive:
            screen.note("interrupting the batch" if force else "waiting until the batch that is under way is committed")
        found = control.stream_stop(name, force=force, timeout=timeout)
    from backcast.cli.render.stream import render_stream

    screen.show(found, render_stream(found, datetime.now(UTC)))
