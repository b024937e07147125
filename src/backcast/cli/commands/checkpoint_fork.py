from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from backcast.cli.checkpoints import (
    AS_IT_IS,
    NO_MOMENT,
    NO_SINK,
    POINT,
    CheckpointName,
    MomentOptions,
    SinkOptions,
    StateOptions,
    absolute,
    change,
)
from backcast.cli.options import DEFAULTS, Common


def checkpoint_fork(
    checkpoint: CheckpointName,
    to: Annotated[Path, Parameter(help="A new folder.")],
    /,
    *,
    at_batch: Annotated[int | None, Parameter(metavar="N", group=POINT, help="After this batch.")] = None,
    moment: MomentOptions = NO_MOMENT,
    offset: Annotated[
        str | None,
        Parameter(metavar="0=123,1=50", group=POINT, help="At these offsets, one for each partition."),
    ] = None,
    state: StateOptions = AS_IT_IS,
    sink: SinkOptions = NO_SINK,
    common: Common = DEFAULTS,
) -> None:
    """Make a new checkpoint, a new query, out of another."""
    where = {"to": absolute(to), "batch": at_batch, "offset": offset}
    where |= {"before": moment.before, "delay": moment.delay}
    given = {**where, "fresh_state": state.fresh_state, "stateless": state.stateless}
    change(common, "checkpoint-fork", "loading the state", checkpoint, sink, **given)
