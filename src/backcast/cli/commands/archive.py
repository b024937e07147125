from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.options import DEFAULTS, Common, TopicName
from backcast.cli.request import user
from backcast.cli.working import working
from backcast.errors import InvalidRequest


def archive(
    topic: TopicName,
    /,
    *,
    offsets: Annotated[
        str | None, Parameter(metavar="RANGES", help="Only these: 0=100..200,1=50.. or earliest, where the log begins.")
    ] = None,
    until: Annotated[str | None, Parameter(metavar="TIME", help="Stop before records of this day or time.")] = None,
    common: Common = DEFAULTS,
) -> None:
    """Copy what the log of a topic has more than its archive."""
    if offsets is not None and until is not None:
        raise InvalidRequest("--offsets say where to end, and --until too", hint="leave one of them out")
    if until is not None:
        from backcast.model.time import parse_instant

        # Spark takes seconds to start: what is no time in any zone need not wait for it.
        parse_instant(until, "UTC")
    with working(common, "archive") as work:
        answer = work.call("archive", "archiving", topic=topic, offsets=offsets, until=until, requested_by=user())

        from backcast.cli.render.archive import render_archive
        from backcast.model.archiving import ArchiveReport

        report = ArchiveReport.model_validate(answer)
        work.screen.show(report, render_archive(report))
