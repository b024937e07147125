from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.checkpoints import CheckpointName, looking
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import screen_of
from backcast.errors import Refused


def checkpoint_inspect(
    checkpoint: CheckpointName,
    /,
    *,
    settings: Annotated[bool, Parameter(help="Show every setting that the query keeps, too.")] = False,
    common: Common = DEFAULTS,
) -> int:
    """Show batches, positions, watermark and state."""
    with looking(common) as control:
        found = control.checkpoint_inspect(checkpoint)
    from backcast.cli.render.checkpoint import render_inspection

    screen_of(common).show(found, render_inspection(found, settings=settings))
    return Refused.exit_code if found.unreadable else 0
