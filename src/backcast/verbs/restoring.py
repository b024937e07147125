"""Windows that lack what retention took before the stream could read it: they are restated, from the archive too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from backcast.appending import landed_runs
from backcast.errors import Refused
from backcast.model import time as t
from backcast.model.fixing import offset_request, window_requests
from backcast.model.pieces import layers, pieces
from backcast.model.recovery import RECOVERED
from backcast.model.request import Kind, Request
from backcast.model.restoring import RESTORED, LostWindows
from backcast.model.states import VISIBLE_STATES
from backcast.model.table import PublishMode
from backcast.sources.kafka.replayed import ANY
from backcast.sources.kafka.spelling import format_ranges

if TYPE_CHECKING:
    from datetime import datetime

    from backcast.model.live import LiveStep
    from backcast.model.log import Ranges
    from backcast.model.stream import StreamSpec
    from backcast.model.time import Interval
    from backcast.ports import LogInput
    from backcast.world import World


def restates(spec: StreamSpec, *, stateful: bool, known: bool) -> bool:
    """Whether whole windows, restated before the stream starts, are right: it writes each row in the batch that reads
    its record, and begins where the run ends. Of a stream that others run, or that is not on record, a run does not
    know where that is.
    """
    replaces = spec.pipeline.settings.publish_mode is PublishMode.REPLACE
    timed = spec.source.archive is not None and spec.source.time is not None
    return replaces and timed and known and not stateful and not spec.external


def lost_windows(world: World, spec: StreamSpec, lacking: Ranges) -> LostWindows:
    """The pieces of time that records of these offsets lie in, but for those that were restated since the recovery.

    That none is left is written down. Raises Refused for records that the archive does not have.
    """
    steps = world.stream_reader().steps(spec.name)
    recovered = next((each for each in reversed(steps) if each.name == RECOVERED), None)
    lost = _windows_of(world, spec, lacking)
    restated = [] if recovered is None else list(_restated(world, spec, recovered, lacking))
    left = tuple(each for each in lost if not any(one.has(each) for one in restated))
    if not left and recovered is not None:
        world.store().streams.step(spec.name, RESTORED, query_id=recovered.data["query_id"])
    why = f"retention took what stream {spec.name} had not read"
    asked = Request(pipeline=spec.pipeline.name, kind=Kind.REPAIR, reason=why)
    requests = window_requests(asked, left, spec.dataset.time.zone, lists=True) if left else ()
    missed = [one.missed for one in restated if any(one.within(each) for each in left)]
    return LostWindows(requests=requests, unread=pieces(missed))


def is_restored(steps: Sequence[LiveStep], query_id: str) -> bool:
    return any(each.name == RESTORED and each.data["query_id"] == query_id for each in steps)


def _windows_of(world: World, spec: StreamSpec, lacking: Ranges) -> list[Interval]:
    time, dataset, now = spec.source.time, spec.dataset, world.clock.now()
    (found,) = (each for each in spec.pipeline.inputs if each.name == spec.input)
    topic = cast("LogInput", world.input(found))
    asked = offset_request(Request(pipeline=spec.pipeline.name), lacking)
    pin = topic.pin_offsets(asked, None, now, 1)
    if pin.log is None or time is None:
        return []
    if pin.log.missing:
        raise Refused(
            f"neither log nor archive of {spec.source.topic} has offsets {format_ranges(pin.log.missing)}",
            hint=f"mend the archive; backcast stream start {spec.name} goes on without them",
        )
    rows = topic.read(pin, dict.fromkeys(pin.log.slices, ANY)).rows
    zone, grain = dataset.time.zone, dataset.grain
    column = time if time.is_wall else time.model_copy(update={"zone": zone})
    walls, _ = world.engine().counted_by_time(rows, column, grain)
    return [_piece(wall, dataset.grain, zone) for wall in sorted(walls)]


def _piece(wall: datetime, grain: t.Grain, zone: str) -> Interval:
    start = t.first_instant(wall, zone)
    return t.Interval(start=start, end=t.next_boundary(start, grain, zone))


@dataclass(frozen=True, slots=True)
class _Restated:
    """What one run has computed anew."""

    windows: tuple[Interval, ...]
    unread: tuple[Interval, ...]
    """Pieces of time with lost records that the run has not read: it goes by the time that records carry."""
    missed: Ranges = ()
    """Lost offsets that it has not read, of whatever time."""

    def has(self, piece: Interval) -> bool:
        return self.within(piece) and piece not in self.unread

    def within(self, piece: Interval) -> bool:
        return any(one.start <= piece.start and piece.end <= one.end for one in self.windows)


def _restated(world: World, spec: StreamSpec, since: LiveStep, lacking: Ranges) -> Iterator[_Restated]:
    """By runs that were planned when the stream stood where it begins now, and so read up to there."""
    for run, manifest in landed_runs(world.reader(), spec.dataset.table):
        ours = run.state in VISIBLE_STATES and run.pipeline == spec.pipeline.name and run.created_at >= since.at
        if ours and not manifest.scope.is_part:
            logs = [pin.log for pin in manifest.inputs if pin.log is not None and pin.log.topic == spec.source.topic]
            unread = pieces(layers([lacking], [log.ranges for log in logs]))
            yield _Restated(manifest.scope.windows, tuple(_windows_of(world, spec, unread)) if unread else (), unread)
