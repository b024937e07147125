from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common, TopicName
from backcast.cli.working import screen_of


def kafka_offsets(
    topic: TopicName,
    /,
    *,
    at: Annotated[str, Parameter(metavar="TIME", help="2026-01-31, 2026-01-31T05:00 or 2026-01-31T05:00Z.")],
    common: Common = DEFAULTS,
) -> None:
    """Say which offsets of a topic a moment falls on."""
    with opened(common) as control:
        found = control.kafka_offsets(topic, at)
    from backcast.cli.render.topic import render_offsets

    screen_of(common).show(found, render_offsets(found))
