"""Which records of the chunks that differ a live stream had dropped as late: why a replay gives other rows than it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from backcast.errors import BackcastError, InvalidRequest
from backcast.model.amendment import amendments, current_inputs
from backcast.model.diff import DiffLate
from backcast.model.time import Interval
from backcast.model.watermark import WatermarkStrategy
from backcast.replaying import input_of
from backcast.sources.kafka.history import checkpoint_batches
from backcast.sources.kafka.late import LateRecords

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.diff import Diff
    from backcast.model.late import Closing
    from backcast.model.manifest import Manifest
    from backcast.model.replay import ReplayPin
    from backcast.model.stream import StreamSpec
    from backcast.world import World

_MOST_CHUNKS = 2_000


def late_in_diff(world: World, manifest: Manifest, diff: Diff) -> DiffLate | None:
    """None of a run that replays no stream. A diff is no worse off where the stream, its topic or its code is gone: it
    says that nothing can be told.
    """
    if manifest.replay is None:
        return None
    try:
        return _Looked(world, manifest, manifest.replay, diff).told()
    except BackcastError as error:
        return DiffLate(stream=manifest.replay.stream, because=error.message)


@dataclass(frozen=True, slots=True)
class _Looked:
    """One run, whose stage was compared."""

    world: World
    manifest: Manifest
    replay: ReplayPin
    diff: Diff

    def told(self) -> DiffLate:
        """Reads the topic only where the checkpoint says that a record can have been late."""
        name, stream, windows = self.replay.stream, self._stream, self._differing()
        nothing = DiffLate(stream=name, taken=0)
        if not windows:
            return nothing
        edges = [each for window in windows.values() for each in (window.start, window.end)]
        whole = Interval(start=min(edges), end=max(edges))
        closing = self.world.replaying(name).closing(whole, self.manifest.planned_at)
        live = LateRecords(stream, checkpoint_batches(stream.checkpoint, stream.source.topic), closing)
        windows = {chunk: each for chunk, each in windows.items() if live.may_have(each)}
        if not windows:
            return nothing
        if len(windows) > _MOST_CHUNKS:
            return DiffLate(stream=name, because=f"{len(windows):,} chunks are too many to look at")
        bounded = self.replay.order is WatermarkStrategy.BOUNDED
        own = self._own(closing) if bounded else None
        found, total = live.by_window(self._records(windows), windows, own)
        return DiffLate(
            stream=name,
            records=total.late,
            unknown=total.unknown,
            taken=None if bounded and own is None else total.taken,
            chunks={chunk: each.late + each.unknown for chunk, each in found.items()},
        )

    @property
    def _stream(self) -> StreamSpec:
        return self.world.stream(self.replay.stream)

    def _differing(self) -> dict[str, Interval]:
        """The event time that rows of chunks which differ are made of."""
        asked = self.manifest
        before, after = (
            timedelta(seconds=each) for each in (asked.warm_up_before_seconds, asked.warm_up_after_seconds)
        )
        named = {each.chunk for each in self.diff.partitions if each.status != "same"}
        return {each.id: each.window.widened(before, after) for each in asked.chunks if each.id in named}

    def _records(self, windows: dict[str, Interval]) -> DataFrame:
        """As the run read them. Raises Drifted when they are gone."""
        world, stream = self.world, self._stream
        inputs = current_inputs(self.manifest, amendments(world.reader().events(self.diff.run_id)))
        pin = next(each for each in inputs if each.name == stream.input)
        spec = next(each for each in stream.pipeline.inputs if each.name == stream.input)
        topic = input_of(world, self.manifest, spec)
        topic.check(pin, {each.id: each.window for each in self.manifest.chunks})
        if self.replay.streamed:
            return world.replaying(stream.name).records(self.replay, pin)
        return topic.read(pin, windows).rows

    def _own(self, closing: Closing | None) -> LateRecords | None:
        """What a query that drops late records has dropped itself; None once its checkpoint is gone."""
        folder = self.world.replaying(self.replay.stream).own_checkpoint(self.diff.run_id, self.replay)
        try:
            return LateRecords(self._stream, checkpoint_batches(folder, self._stream.source.topic), closing)
        except InvalidRequest:
            return None
