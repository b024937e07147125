from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from backcast.cli.checkpoints import CheckpointName, absolute, looking
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import screen_of


def checkpoint_backup(
    checkpoint: CheckpointName,
    /,
    *,
    to: Annotated[
        Path | None, Parameter(metavar="DIR", help="A new folder; default: one beside the checkpoint, named by time.")
    ] = None,
    common: Common = DEFAULTS,
) -> None:
    """Copy a checkpoint with hashes, also while it is in use."""
    with looking(common) as control:
        made = control.checkpoint_backup(checkpoint, to=None if to is None else absolute(to))
    from backcast.cli.render.checkpoint_change import render_backup

    screen_of(common).show(made, render_backup(made, checkpoint))
