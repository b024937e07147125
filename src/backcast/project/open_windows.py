"""What a stream has read and not written yet: told by its checkpoint, and by the plan of its transform."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from backcast.errors import BackcastError, InvalidRequest
from backcast.model.checkpoint_log import Garbled
from backcast.model.late import Holding, OpenWindows
from backcast.model.time import floor_instant
from backcast.project.streaming import ALWAYS
from backcast.sources.kafka.record_times import instant_of
from backcast.streams.checkpoint.folder import Checkpoint

if TYPE_CHECKING:
    from backcast.model.stream import StreamSpec
    from backcast.project.replaying import StreamReplay

_AT_ONCE = frozenset({"dedupe", "dedupeWithinWatermark", "globalLimit"})
"""Operators that give out a row in the batch that reads it, as Spark calls them in a checkpoint."""
_BY_LOGIC = frozenset({"symmetricHashJoin", ""})
"""Of a join the checkpoint does not tell which kind it is; of another Spark's state not even that."""
_LOOK_BACK = 200


def open_windows(replaying: StreamReplay, now: datetime) -> OpenWindows | None:
    """None: it writes each row in the batch that makes it, or has completed no batch."""
    stream = replaying.stream
    try:
        checkpoint = Checkpoint.at(stream.checkpoint)
        operators = {each.name for each in checkpoint.operators}
        newest = checkpoint.committed
        plan = None if newest is None else checkpoint.plan(newest)
    except (InvalidRequest, Garbled, OSError):
        return _unreadable(replaying, now)
    if newest is None or operators <= _AT_ONCE:
        return None
    holding = _holding(replaying, now)
    if holding is None and operators - _AT_ONCE <= _BY_LOGIC:
        return None
    if plan is None:
        return _unreadable(replaying, now)
    watermark = instant_of(plan.watermark_ms) if plan.watermark_ms > 0 else None
    return _open(stream, holding or Holding(unknown=True), watermark)


def _open(stream: StreamSpec, holding: Holding, watermark: datetime | None) -> OpenWindows:
    since, spec, dataset = None, stream.pipeline, stream.dataset
    if watermark is not None:
        written = holding.written_until(watermark, max(spec.warm_up_before, spec.warm_up_after))
        # A row may be dated by the piece of time that its window begins in.
        since = floor_instant(written, dataset.grain, dataset.time.zone)
    return OpenWindows(stream.name, since, watermark, external=stream.external)


def _unreadable(replaying: StreamReplay, now: datetime) -> OpenWindows | None:
    """By the store, which knows the batches of a stream that is run here; of others nobody can tell."""
    stream, reader = replaying.stream, replaying.wiring.stream_reader()
    live = reader.stream(stream.name)
    if not stream.external and (live is None or live.query_id is None):
        return None
    holding = _holding(replaying, now)
    if holding is None:
        return None
    if stream.external or live is None:
        return OpenWindows(stream.name, None, None, external=True, known=False)
    batches = [each for each in reader.batches(stream.name, _LOOK_BACK) if each.query_id == live.query_id]
    if not any(each.landed for each in batches):
        return None
    marks = [each.watermark.astimezone(UTC) for each in batches if each.landed and each.watermark is not None]
    return _open(stream, holding, max(marks, default=None))


def _holding(replaying: StreamReplay, now: datetime) -> Holding | None:
    """Of the transform as it is now; what cannot be looked into may hold anything."""
    from backcast.spark.streaming_plan import holding

    try:
        return holding(replaying.looked_at(ALWAYS, now))
    except BackcastError:
        return Holding(unknown=True)
