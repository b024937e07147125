"""Where a stream stands that others run: nothing is on record about it, and its checkpoint tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest
from backcast.model.live import StreamPosition
from backcast.sources.kafka.history import checkpoint_batches

if TYPE_CHECKING:
    from backcast.model.stream import StreamSpec


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
