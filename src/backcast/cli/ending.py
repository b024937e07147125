"""How a command about a run ends: what it shows and which exit code says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.errors import Conflict, Failed, Refused

if TYPE_CHECKING:
    from backcast.cli.options import Common
    from backcast.cli.screen import Screen
    from backcast.model.document import Document
    from backcast.model.states import RunState


def exit_code(state: RunState) -> int:
    """0 when the run is where it was to go; else the code of the error that its state stands for."""
    from backcast.model.states import RunState

    match state:
        case RunState.FAILED:
            return Failed.exit_code
        case RunState.REJECTED | RunState.REVIEW:
            return Refused.exit_code
        case RunState.RUNNING | RunState.PUBLISHING | RunState.UNDOING | RunState.CANCELLING:
            return Conflict.exit_code
        case _:
            return 0


def show_status(common: Common, screen: Screen, document: Document, run_id: str | None = None) -> None:
    """The document under `--json`; for people where the run stands now, read from the store."""
    if screen.json:
        screen.write_json(document)
        return
    from datetime import UTC, datetime

    from backcast.cli.opened import opened
    from backcast.cli.render.status import render_status

    with opened(common) as control:
        status = control.status(run_id or str(getattr(document, "run_id", "")))
    screen.show(status, render_status(status, datetime.now(UTC)))
