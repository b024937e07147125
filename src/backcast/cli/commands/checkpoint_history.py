from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.checkpoints import CheckpointName, looking
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import screen_of


def checkpoint_history(
    checkpoint: CheckpointName,
    /,
    *,
    last: Annotated[
        int, Parameter(metavar="N", help="How many batches, the newest; 0 for all.", show_default=True)
    ] = 20,
    common: Common = DEFAULTS,
) -> None:
    """Show a checkpoint batch by batch."""
    with looking(common) as control:
        found = control.checkpoint_history(checkpoint, last=last if last > 0 else None)
    from backcast.cli.render.checkpoint import render_history

    screen_of(common).show(found, render_history(found))
