"""Where a stream stands that others run: nothing is on record about it, and its checkpoint tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest, Refused
from backcast.model.live import StreamPosition
from backcast.sources.kafka.history import checkpoint_batches
from backcast.streams.checkpoint.folder import Checkpoint, local_folder
from backcast.streams.checkpoint.life import refuse_running

if TYPE_CHECKING:
    from backcast.model.stream import StreamSpec
    from backcast.ports import Clock

_MARGIN = 2.0
"""Seconds that a query may take between its trigger and the file that says so."""


def standing(spec: StreamSpec) -> tuple[StreamPosition | None, str]:
    """The position, or why it is not known. Needs neither Spark nor brokers, and never fails on a checkpoint."""
    try:
        batches = checkpoint_batches(spec.checkpoint, spec.source.topic)
    except (InvalidRequest, OSError) as error:
        return None, str(error)
    newest = next((each for each in reversed(batches) if each.committed), None)
    if newest is None:
        return None, f"{spec.checkpoint} has no committed batch"
    found = StreamPosition(batch=newest.number, begun=newest.begun, ends=newest.ends, watermark=newest.watermark)
    return found, ""


def at_rest(spec: StreamSpec, clock: Clock, *, stopped: bool) -> tuple[str | None, StreamPosition]:
    """The query that others have stopped, and where it stands. `stopped` is somebody's word, for a stream that waits
    for records does not move either.

    Raises Conflict while its files change, looked at for as long as it takes to begin its next batch, and without that
    word; Refused behind a batch that was cut off: whether its rows are in the table, only its query finds out.
    """
    refuse_unless_stopped(spec, clock, stopped=stopped)
    checkpoint = Checkpoint(local_folder(spec.checkpoint))
    if checkpoint.planned is not None and checkpoint.planned not in checkpoint.commits:
        raise Refused(
            f"batch {checkpoint.planned} of stream {spec.name} was begun and is not over: whether its rows are in"
            f" {spec.dataset.table} cannot be told",
            hint="let its query end the batch: started with trigger(availableNow=True) it stops behind one by itself",
        )
    position, unknown = standing(spec)
    if position is None:
        hint = "without --pause nothing has to be known about it"
        raise Refused(f"nobody knows where stream {spec.name} stands: {unknown}", hint=hint)
    return checkpoint.readable_id(), position


def refuse_unless_stopped(spec: StreamSpec, clock: Clock, *, stopped: bool) -> None:
    """Raises Conflict as `at_rest` does."""
    checkpoint = Checkpoint(local_folder(spec.checkpoint))
    refuse_running(checkpoint, clock, stopped=stopped, seconds=spec.trigger.total_seconds() + _MARGIN)
