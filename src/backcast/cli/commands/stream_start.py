from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from backcast.cli import detached
from backcast.cli.locate import find_project
from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common, StreamName
from backcast.cli.working import screen_of, working
from backcast.errors import InvalidRequest

if TYPE_CHECKING:
    from pathlib import Path

    from backcast.control import ControlPlane
    from backcast.model.live import StreamStatus

_POLL_SECONDS = 0.3
_LEAVE_SECONDS = 60.0


def stream_start(
    name: StreamName,
    /,
    *,
    detach: Annotated[bool, Parameter(help="Start it in the background and return once it runs.")] = False,
    once: Annotated[bool, Parameter(help="Read what the topic has now, then end.")] = False,
    accept_checkpoint: Annotated[
        bool, Parameter(help="Take the checkpoint as it is, though it is not the one that this stream went by.")
    ] = False,
    common: Common = DEFAULTS,
) -> None:
    """Run a declared stream until it is stopped."""
    if detach and once:
        raise InvalidRequest("--once ends by itself", hint="leave --detach out")
    if detach:
        _in_background(name, common, accept=accept_checkpoint)
        return
    with opened(common) as control:
        control.refuse_start(name)
    with working(common, "stream-start") as work:
        answer = work.call("stream-start", "streaming", name=name, once=once, accept_checkpoint=accept_checkpoint)

        from backcast.cli.render.stream import render_stream
        from backcast.model.live import StreamStatus

        ended = StreamStatus.model_validate(answer)
        work.screen.show(ended, render_stream(ended, datetime.now(UTC)))


def _in_background(name: str, common: Common, *, accept: bool) -> None:
    from backcast.cli.render.stream import render_stream

    project = find_project(common.project)
    with opened(common) as control:
        control.refuse_start(name)
        found = started_in_background(control, project, common.profile, name, accept=accept)
    screen_of(common).show(found, render_stream(found, datetime.now(UTC)))


def started_in_background(
    control: ControlPlane, project: Path, profile: str | None, name: str, *, accept: bool = False
) -> StreamStatus:
    """Once it runs. Raises what kept it from running."""
    _let_the_last_one_go(control, project, name)
    began = time.time()
    detached.detach_stream(project, profile, name, accept_checkpoint=accept)
    while True:
        at_work = detached.is_working(project, detached.stream_work(name))
        found = control.stream_status(name)
        if found.state == "running":
            return found
        if not at_work:
            failure = detached.failure(project, detached.stream_work(name), began)
            if failure is not None:
                raise failure
            return found
        time.sleep(_POLL_SECONDS)


def _let_the_last_one_go(control: ControlPlane, project: Path, name: str) -> None:
    """A process that has stopped the stream takes a moment to end. Raises LeaseHeld when it is one that starts it."""
    deadline = time.monotonic() + _LEAVE_SECONDS
    while detached.is_working(project, detached.stream_work(name)) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        control.refuse_start(name)
