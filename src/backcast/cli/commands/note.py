from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.request import told
from backcast.cli.working import screen_of


def note(
    run_id: RunId,
    text: Annotated[str, Parameter(help="What happened since, in a sentence.")],
    /,
    *,
    common: Common = DEFAULTS,
) -> None:
    """Add a sentence to the history of a run."""
    from backcast.cli.render.evidence import render_note

    with opened(common) as control:
        added = control.note(run_id, told(text))
    screen_of(common).show(added, render_note(added))
