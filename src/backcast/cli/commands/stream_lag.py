from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.request import seconds
from backcast.cli.working import screen_of
from backcast.errors import Refused


def stream_lag(
    stream: Annotated[str, Parameter(help="A stream of backcast.yaml, or the folder of a checkpoint.")],
    /,
    *,
    topic: Annotated[
        str | None, Parameter(metavar="SOURCE", help="With a folder: the source of backcast.yaml that it reads.")
    ] = None,
    longest: Annotated[
        str | None,
        Parameter(name="--max", metavar="DURATION", help="End with 3 when an unread record waits longer: 30m, 1h."),
    ] = None,
    common: Common = DEFAULTS,
) -> int:
    """Say how far a stream is behind its topic."""
    most = None if longest is None else seconds(longest, "--max")
    with opened(common) as control:
        found = control.stream_lag(stream, topic=topic)
    from backcast.cli.render.lag import render_lag

    screen_of(common).show(found, render_lag(found, most))
    return 0 if found.sound and not found.waits_longer(most) else Refused.exit_code
