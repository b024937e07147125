from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.options import DEFAULTS, Common, TopicName
from backcast.cli.working import working


def kafka_window(
    topic: TopicName,
    /,
    *,
    event_time: Annotated[
        str, Parameter(metavar="A..B", help="2026-01-31..2026-02-01: two dates or times; B is no part of it.")
    ],
    to_end: Annotated[
        bool, Parameter(help="Scan to the end of the log instead of trusting the declared slack.")
    ] = False,
    common: Common = DEFAULTS,
) -> None:
    """Find the offsets that hold a window of event time."""
    from backcast.model.time import parse_interval

    # Spark takes seconds to start: what is no window in any zone need not wait for it.
    parse_interval(event_time, "UTC")
    with working(common, "kafka-window") as work:
        answer = work.call("kafka-window", "reading the topic", topic=topic, event_time=event_time, to_end=to_end)

        from backcast.cli.render.topic import render_window
        from backcast.model.topic_report import WindowSurvey

        found = WindowSurvey.model_validate(answer)
        work.screen.show(found, render_window(found))
