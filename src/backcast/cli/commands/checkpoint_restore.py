from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from backcast.cli.checkpoints import NO_SINK, CheckpointName, SinkOptions, Stopped, absolute, change
from backcast.cli.options import DEFAULTS, Common


def checkpoint_restore(
    checkpoint: CheckpointName,
    /,
    *,
    backup: Annotated[Path, Parameter(name="--from", metavar="DIR", help="What `checkpoint backup` made.")],
    stopped: Stopped = False,
    sink: SinkOptions = NO_SINK,
    common: Common = DEFAULTS,
) -> None:
    """Put a backup in its place; what was there is kept."""
    given = {"backup": absolute(backup), "stopped": stopped}
    change(common, "checkpoint-restore", "asking the table", checkpoint, sink, **given)
