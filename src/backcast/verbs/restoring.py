"""Windows that lack what retention took before the stream could read it: they are restated, from the archive too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

from backcast.appending import landed_runs
from backcast.errors import Refused
from backcast.model import time as t
from backcast.model.fixing import offset_request, window_requests
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


def restates(spec: StreamSpec, *, stateful: bool) -> bool:
    """Whether whole windows, restated before the stream starts, are right: it writes each row in the batch that reads
    its record, and begins where the run ends. Of a stream that others run a run does not know where that is.
    """
    replaces = spec.pipeline.settings.publish_mode is PublishMode.REPLACE
    timed = spec.source.archive is not None and spec.source.time is not None
    return replaces and timed and not stateful and not spec.external


def lost_windows(world: World, spec: StreamSpec, lacking: Ranges) -> LostWindows:
    """The pieces of time that records of these offsets lie in, but for those that were restated since the recovery.

    That none is left is written down. Raises Refused for records that the archive does not have.
    """
    steps = world.stream_reader().steps(spec.name)
    recovered = next((each for each in reversed(steps) if each.name == RECOVERED), None)
    left = tuple(
        _left(_windows_of(world, spec, lacking), [] if recovered is None else _restated(world, spec, recovered))
    )
    if not left and recovered is not None:
        world.store().streams.step(spec.name, RESTORED, query_id=recovered.data["query_id"])
    why = f"retention took what stream {spec.name} had not read"
    asked = Request(pipeline=spec.pipeline.name, kind=Kind.REPAIR, reason=why)
    return LostWindows(requests=window_requests(asked, left, spec.dataset.time.zone, lists=True) if left else ())


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


def _restated(world: World, spec: StreamSpec, since: LiveStep) -> list[Interval]:
    """By runs that were planned when the stream stood where it begins now, and so read up to there."""
    return [
        window
        for run, manifest in landed_runs(world.reader(), spec.dataset.table)
        if run.state in VISIBLE_STATES and run.pipeline == spec.pipeline.name and run.created_at >= since.at
        for window in manifest.scope.windows
    ]


def _left(windows: Sequence[Interval], restated: Sequence[Interval]) -> Iterator[Interval]:
    for each in windows:
        if not any(one.start <= each.start and each.end <= one.end for one in restated):
            yield each
