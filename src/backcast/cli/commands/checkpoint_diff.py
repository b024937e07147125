from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.checkpoints import CheckpointName, looking
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import screen_of


def checkpoint_diff(
    checkpoint: CheckpointName,
    other: Annotated[str, Parameter(help="Another checkpoint, or a backup.")],
    /,
    *,
    common: Common = DEFAULTS,
) -> None:
    """Compare two checkpoints, or one with a backup."""
    with looking(common) as control:
        found = control.checkpoint_diff(checkpoint, other)
    from backcast.cli.render.checkpoint_change import render_difference

    screen_of(common).show(found, render_difference(found))
