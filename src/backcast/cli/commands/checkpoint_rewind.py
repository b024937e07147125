from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.checkpoints import NO_SINK, POINT, CheckpointName, SinkOptions, Stateless, Stopped, change
from backcast.cli.options import DEFAULTS, Common


def checkpoint_rewind(
    checkpoint: CheckpointName,
    /,
    *,
    to_batch: Annotated[int | None, Parameter(metavar="N", group=POINT, help="After this batch.")] = None,
    before: Annotated[
        str | None,
        Parameter(metavar="TIME", group=POINT, help="After the newest batch whose watermark lies before this moment."),
    ] = None,
    offset: Annotated[
        str | None,
        Parameter(metavar="0=123", group=POINT, help="After the newest batch that ends at or before these offsets."),
    ] = None,
    stopped: Stopped = False,
    stateless: Stateless = False,
    sink: SinkOptions = NO_SINK,
    common: Common = DEFAULTS,
) -> None:
    """Let a stream go on after an earlier batch."""
    given = {"batch": to_batch, "before": before, "offset": offset, "stopped": stopped, "stateless": stateless}
    change(common, "checkpoint-rewind", "loading the state", checkpoint, sink, **given)
