from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.checkpoints import (
    NO_MOMENT,
    NO_SINK,
    POINT,
    CheckpointName,
    MomentOptions,
    SinkOptions,
    Stateless,
    Stopped,
    change,
)
from backcast.cli.options import DEFAULTS, Common


def checkpoint_rewind(
    checkpoint: CheckpointName,
    /,
    *,
    to_batch: Annotated[int | None, Parameter(metavar="N", group=POINT, help="After this batch.")] = None,
    moment: MomentOptions = NO_MOMENT,
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
    where = {"batch": to_batch, "before": moment.before, "delay": moment.delay, "offset": offset}
    given = {**where, "stopped": stopped, "stateless": stateless}
    change(common, "checkpoint-rewind", "loading the state", checkpoint, sink, **given)
