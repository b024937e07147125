from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from backcast.cli.checkpoints import NO_SINK, POINT, CheckpointName, SinkOptions, absolute, change
from backcast.cli.options import DEFAULTS, Common


def checkpoint_fork(
    checkpoint: CheckpointName,
    to: Annotated[Path, Parameter(help="A new folder.")],
    /,
    *,
    at_batch: Annotated[int | None, Parameter(metavar="N", group=POINT, help="After this batch.")] = None,
    before: Annotated[
        str | None,
        Parameter(metavar="TIME", group=POINT, help="After the newest batch whose watermark lies before this moment."),
    ] = None,
    offset: Annotated[
        str | None,
        Parameter(metavar="0=123,1=50", group=POINT, help="At these offsets, one for each partition."),
    ] = None,
    fresh_state: Annotated[bool, Parameter(group=POINT, help="Begin there with batch 0 and no state.")] = False,
    sink: SinkOptions = NO_SINK,
    common: Common = DEFAULTS,
) -> None:
    """Make a new checkpoint, a new query, out of another."""
    given = {"to": absolute(to), "batch": at_batch, "before": before, "offset": offset, "fresh_state": fresh_state}
    change(common, "checkpoint-fork", "loading the state", checkpoint, sink, **given)
