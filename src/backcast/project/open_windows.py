"""What a stream has read and not written yet: told by its checkpoint, and by the plan of its transform."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from backcast.errors import BackcastError, InvalidRequest
from backcast.model.checkpoint_log import Garbled
from backcast.model.late import Holding, OpenWindows
from backcast.model.time import floor_instant
from backcast.sources.kafka.record_times import instant_of
from backcast.streams.checkpoint.folder import Checkpoint
from backcast.streams.checkpoint.state_files import names_of

if TYPE_CHECKING:
    from backcast.model.stream import StreamSpec
    from backcast.ports.streams import StreamReader

    Look = Callable[[], Holding | None]

_AT_ONCE = frozenset({"dedupe", "dedupeWithinWatermark", "globalLimit"})
"""Operators that give out a row in the batch that reads it, as Spark calls them in a checkpoint."""
_BY_LOGIC = frozenset({"symmetricHashJoin", ""})
"""Of a join the checkpoint does not tell which kind it is; of another Spark's state not even that."""
_LOOK_BACK = 200


def open_windows(stream: StreamSpec, reader: StreamReader, look: Look) -> OpenWindows | None:
    """None: it writes each row in the batch that makes it, or has completed no batch.

    `look` tells what the transform holds back as it is now; what it cannot look into may hold anything. The query may
    be of older code, so the state that is there counts too.
    """
    try:
        checkpoint = Checkpoint.at(stream.checkpoint)
        newest = checkpoint.committed
        plan = None if newest is None else checkpoint.plan(newest)
        operators = names_of(checkpoint.root / "state")
    except (InvalidRequest, Garbled, OSError):
        return _by_the_store(stream, reader, look)
    if newest is None or operators <= _AT_ONCE:
        return None
    holding = _holding(look)
    if holding is None and operators - _AT_ONCE <= _BY_LOGIC:
        return None
    if plan is None:
        return _by_the_store(stream, reader, look)
    watermark = instant_of(plan.watermark_ms) if plan.watermark_ms > 0 else None
    return _open(stream, holding or Holding(unknown=True), watermark)


def _by_the_store(stream: StreamSpec, reader: StreamReader, look: Look) -> OpenWindows | None:
    """Which knows the batches of a stream that is run here; of others nobody can tell."""
    live = None if stream.external else reader.stream(stream.name)
    if not stream.external and (live is None or live.query_id is None):
        return None
    holding = _holding(look)
    if holding is None:
        return None
    if live is None:
        return OpenWindows(stream.name, None, None, external=True, known=False)
    batches = [each for each in reader.batches(stream.name, _LOOK_BACK) if each.query_id == live.query_id]
    if not any(each.landed for each in batches):
        return None
    marks = [each.watermark.astimezone(UTC) for each in batches if each.landed and each.watermark is not None]
    return _open(stream, holding, max(marks, default=None))


def _open(stream: StreamSpec, holding: Holding, watermark: datetime | None) -> OpenWindows:
    since, spec, dataset = None, stream.pipeline, stream.dataset
    if watermark is not None:
        written = holding.written_until(watermark, max(spec.warm_up_before, spec.warm_up_after))
        # A row may be dated by the piece of time that its window begins in.
        since = floor_instant(written, dataset.grain, dataset.time.zone)
    return OpenWindows(stream.name, since, watermark, external=stream.external)


def _holding(look: Look) -> Holding | None:
    try:
        return look()
    except BackcastError:
        return Holding(unknown=True)
