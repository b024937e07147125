"""Records that a run set aside, taken up again: the request of a new run over exactly those.

Needs Spark to look them up. The new run reads the topic, not the quarantine, so that what comes of it is proven as for
every other run.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from backcast.errors import Drifted, InvalidRequest, StateConflict
from backcast.model.amendment import amendments, current_inputs
from backcast.model.log import Ranges
from backcast.model.quarantine import QuarantinedRun, quarantined
from backcast.model.request import Kind, Request
from backcast.model.run import Run
from backcast.model.states import OPEN_STATES, VISIBLE_STATES, RunState
from backcast.model.table import PublishMode
from backcast.model.words import many

if TYPE_CHECKING:
    from backcast.model.manifest import InputPin, Manifest
    from backcast.model.time import Interval
    from backcast.ports import RunReader
    from backcast.world import World

_ALL = 100_000


def retry_request(world: World, run_id: str, *, reason: str = "", ticket: str = "", requested_by: str = "") -> Request:
    """For `append` and `merge` the offsets themselves, for `replace` the chunks that may hold them.

    Raises StateConflict when the run's other rows are not in the table, when there is nothing to take up, or when
    another run has done so.
    """
    reader = world.reader()
    run = reader.run(run_id)
    manifest, events = reader.manifest(run.run_id), reader.events(run.run_id)
    _refuse(run, taken_up(reader, run), quarantined(run, events))
    mode = world.pipeline(manifest.pipeline).settings.publish_mode
    if mode is not manifest.settings.publish_mode:
        raise InvalidRequest(
            f"run {run.run_id} published by {manifest.settings.publish_mode}, and pipeline {manifest.pipeline} now does"
            f" by {mode}",
            hint="plan what you need instead: backcast plan --help",
        )
    inputs = [pin for pin in current_inputs(manifest, amendments(events)) if pin.log is not None]
    _same_topics(world, manifest, inputs)
    offsets = world.quarantined_offsets(run.run_id, [pin.dataset for pin in inputs])
    number = sum(each.span for found in offsets.values() for each in found)
    if not number:
        raise StateConflict(
            f"the quarantine that is declared now has no record of run {run.run_id}",
            hint=f"declare the table of that time: backcast quarantine show {run.run_id}",
        )
    told = f"retry of {many(number, 'quarantined record')} of {run.run_id}"
    asked = Request(
        pipeline=manifest.pipeline,
        retries=run.run_id,
        kind=Kind.REPAIR,
        reason=f"{told}: {reason}" if reason else told,
        ticket=ticket or manifest.request.ticket,
        requested_by=requested_by,
    )
    if mode is PublishMode.REPLACE:
        return of_chunks(asked, manifest, inputs, offsets, world.pipeline(manifest.pipeline).output.time.zone)
    return _of_offsets(asked, manifest, offsets[inputs[0].dataset])


def quarantined_runs(reader: RunReader, limit: int) -> list[QuarantinedRun]:
    """Of that many runs, the newest, those that set records aside; each with the run that took them up again."""
    found = []
    for run in reader.runs(limit=limit):
        if met := quarantined(run, reader.events(run.run_id)):
            other = taken_up(reader, run)
            found += [each.model_copy(update={"retried_by": other and other.run_id}) for each in met]
    return found


def taken_up(reader: RunReader, run: Run) -> Run | None:
    """The run that has taken up what this one set aside, or is about to."""
    later = (each for each in reader.runs(dataset=run.dataset, limit=_ALL) if each.kind == Kind.REPAIR)
    living = (each for each in later if each.state in OPEN_STATES or each.state in VISIBLE_STATES)
    return next((each for each in living if reader.manifest(each.run_id).request.retries == run.run_id), None)


def _refuse(run: Run, other: Run | None, found: list[QuarantinedRun]) -> None:
    name = run.run_id
    if not found:
        raise StateConflict(f"run {name} has set no record aside", hint="backcast quarantine list")
    if run.state is RunState.UNDONE:
        raise StateConflict(
            f"run {name} was undone: none of what it read is in the table",
            hint="plan all of it again instead",
        )
    if run.state not in VISIBLE_STATES:
        command = f"backcast publish {name}" if run.state is RunState.ACCEPTED else f"backcast status {name}"
        raise StateConflict(f"run {name} is {run.state}: what it could use is not in the table yet", hint=command)
    if other is not None and other.state in VISIBLE_STATES:
        raise StateConflict(
            f"run {other.run_id} has taken up what {name} set aside",
            hint=f"what that one set aside again: backcast quarantine retry {other.run_id}",
        )
    if other is not None:
        raise StateConflict(
            f"run {other.run_id} takes up what {name} set aside, and is {other.state}",
            hint=f"backcast status {other.run_id}; or give that one up: backcast cancel {other.run_id}",
        )


def _same_topics(world: World, manifest: Manifest, inputs: Iterable[InputPin]) -> None:
    specs = {each.name: each for each in world.pipeline(manifest.pipeline).inputs}
    for pin in inputs:
        if pin.name not in specs:
            raise Drifted(f"pipeline {manifest.pipeline} has no input {pin.name} any more", hint="plan what you need")
        if world.input(specs[pin.name]).identity().uuid != pin.identity.uuid:
            raise Drifted(
                f"topic {pin.identity.name} was deleted and made again: its offsets mean other records",
                hint="their bytes are in the quarantine table; plan what the topic has now",
            )


def _of_offsets(asked: Request, manifest: Manifest, offsets: Ranges) -> Request:
    spelled = ",".join(f"{each.partition}={each.start}..{each.end}" for each in offsets)
    windows = manifest.scope.windows
    times = {"start": windows[0].start.isoformat(), "end": windows[-1].end.isoformat()} if windows else {}
    return asked.model_copy(update={"offsets": spelled, **times})


def of_chunks(
    asked: Request, manifest: Manifest, inputs: list[InputPin], offsets: dict[str, Ranges], zone: str
) -> Request:
    """A record without event time may belong to every chunk that reads it."""
    touched = {
        name
        for pin in inputs
        if pin.log is not None
        for name, each in pin.log.slices.items()
        if _meet(each.ranges, offsets[pin.dataset])
    }
    windows = sorted((each.window for each in manifest.chunks if each.id in touched), key=lambda each: each.start)
    update: dict[str, object] = {"where": manifest.request.where}
    if all(one.end == other.start for one, other in pairwise(windows)):
        update |= {"start": windows[0].start.isoformat(), "end": windows[-1].end.isoformat()}
    else:
        update["dates"] = tuple(sorted({day for each in windows for day in _days(each, zone)}))
    return asked.model_copy(update=update)


def _meet(ranges: Ranges, offsets: Ranges) -> bool:
    read = {each.partition: each for each in ranges}
    return any(
        read[each.partition].start < each.end and each.start < read[each.partition].end
        for each in offsets
        if each.partition in read
    )


def _days(window: Interval, zone: str) -> Iterable[date]:
    first = window.start.astimezone(ZoneInfo(zone)).date()
    last = (window.end - timedelta(microseconds=1)).astimezone(ZoneInfo(zone)).date()
    return (first + timedelta(days=number) for number in range((last - first).days + 1))
