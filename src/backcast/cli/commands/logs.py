from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.working import screen_of

if TYPE_CHECKING:
    from backcast.cli.screen import Screen
    from backcast.model.run import Event

_POLL_SECONDS = 1.0


def logs(
    run_id: RunId,
    /,
    *,
    follow: Annotated[bool, Parameter(alias="-f", help="Go on until the run is over.")] = False,
    common: Common = DEFAULTS,
) -> None:
    """Print the recorded events of a run. Under --json each event is one line."""
    from backcast.model.states import OPEN_STATES

    screen = screen_of(common)
    with opened(common) as control:
        known = control.status(run_id).run.run_id
        last = 0
        while True:
            # The state first: an event that comes with the last change of state must not be missed.
            is_open = control.status(known).run.state in OPEN_STATES
            events = control.logs(known, after=last)
            _print(screen, events)
            last = events[-1].number if events else last
            if not (follow and is_open):
                return
            time.sleep(_POLL_SECONDS)


def _print(screen: Screen, events: list[Event]) -> None:
    from backcast.cli.render.events import render_event

    for event in events:
        if screen.json:
            screen.write_json(event, indent=None)
        else:
            screen.out.print(render_event(event))
    screen.flush()
