"""Which pieces of a stream's table late records touch: told by its checkpoint and one look at the topic."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest
from backcast.model.late import LateFound
from backcast.model.time import Interval, cut
from backcast.sources.kafka.history import checkpoint_batches
from backcast.sources.kafka.lag import position_of
from backcast.sources.kafka.late import LateRecords

if TYPE_CHECKING:
    from backcast.project.replaying import StreamReplay

_MOST_PIECES = 2_000


def late_windows(replaying: StreamReplay, windows: Sequence[Interval], now: datetime) -> LateFound:
    """Of the pieces that the stream will not write to any more. Raises InvalidRequest when nobody can tell."""
    stream, spec = replaying.stream, replaying.stream.pipeline
    batches = checkpoint_batches(stream.checkpoint, stream.source.topic)
    passed = position_of(batches, stream.checkpoint).batch.watermark
    held = replaying.open_windows(now)
    if held is not None and held.known:
        passed = held.since
    grain, zone = stream.dataset.grain, stream.dataset.time.zone
    pieces = [each for window in windows for each in cut(window, grain, zone)]
    if len(pieces) > _MOST_PIECES:
        hint = f"ask for at most {_MOST_PIECES:,} at once"
        raise InvalidRequest(f"{len(pieces):,} {grain.value}s are too many to look for late records in", hint=hint)
    whole = Interval(start=windows[0].start, end=windows[-1].end)
    records = LateRecords(stream, batches, replaying.closing(whole, now))
    closed = [each for each in pieces if passed is not None and each.end <= passed]
    # Rows of a piece are made of records around it, as far as the pipeline's warm-up says.
    read = {each.start.isoformat(): each.widened(spec.warm_up_before, spec.warm_up_after) for each in closed}
    read = {name: each for name, each in read.items() if records.may_have(each)}
    if not read:
        return LateFound(windows=(), late=0, unknown=0, left_open=len(pieces) - len(closed))
    topic = replaying.wiring.log_input(stream.input, stream.source)
    rows = topic.read(topic.pin(read, now), read).rows
    found, total = records.by_window(rows, read)
    return LateFound(
        windows=tuple(each for each in closed if each.start.isoformat() in found),
        late=total.late,
        unknown=total.unknown,
        left_open=len(pieces) - len(closed),
    )
