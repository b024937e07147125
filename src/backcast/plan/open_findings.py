"""Findings about streams into the same table that will still write in the window: what both write is there twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from backcast.model.finding import Finding, block, warn
from backcast.model.late import OpenWindows
from backcast.model.scope import Scope
from backcast.model.time import floor_instant, local
from backcast.plan.windows import Partitioning


def open_findings(streams: Iterable[OpenWindows], scope: Scope, how: Partitioning) -> list[Finding]:
    """No live policy makes it harmless: the stream writes after the run is published. A scope without windows may hold
    rows of any time.
    """
    return [finding for each in streams for finding in _found(each, scope, how)]


def _found(stream: OpenWindows, scope: Scope, how: Partitioning) -> Iterator[Finding]:
    gone = f"if it never runs again, take stream {stream.stream} out of backcast.yaml"
    if not stream.known:
        yield warn(
            "stream.unreadable",
            f"stream {stream.stream} keeps windows open, and its checkpoint cannot be read: what it has still to write"
            " would be in the table twice",
            "end the window where its watermark has passed everything that it writes to this table",
        )
        return
    since = stream.since
    if since is not None and scope.windows and all(each.end <= since for each in scope.windows):
        return
    later = "plan again when its watermark has passed the end of the window"
    ask = f"backcast stream {'lag' if stream.external else 'status'} {stream.stream}"
    twice = "it will write them, and those of both would be in the table twice"
    if since is None or stream.watermark is None:
        yield block(
            "stream.still-open",
            f"stream {stream.stream} has no watermark yet, and has still to write what it has read: {twice}",
            f"{later} ({ask}); {gone}",
        )
        return
    end = _reachable(since, scope, how)
    earlier = "" if end is None else f"end the window at {_spelled(end, how.column.zone)}, or "
    yield block(
        "stream.still-open",
        f"stream {stream.stream} has still to write rows from {since:%Y-%m-%d %H:%M} UTC on (its watermark is"
        f" {stream.watermark:%Y-%m-%d %H:%M:%S} UTC): {twice}",
        f"{earlier}{later} ({ask}); {gone}",
    )


def _reachable(since: datetime, scope: Scope, how: Partitioning) -> datetime | None:
    """The last end of a window that is not widened beyond the moment; None: nothing would be left of this one."""
    end = since if scope.exact or how.unit is None else floor_instant(since, how.unit, how.zone)
    return end if scope.windows and scope.windows[0].start < end else None


def _spelled(instant: datetime, zone: str) -> str:
    """As `--to` takes it: a day of the dataset's zone, or a time with its own."""
    wall = local(instant, zone)
    if wall.time() == wall.time().min:
        return f"{wall:%Y-%m-%d}"
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%S}Z".replace(":00Z", "Z")
