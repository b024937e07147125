"""A backfill of a stream's table as one command of several steps: which way it goes, why, and how far it is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from pydantic import Field

from backcast.errors import Refused, StateConflict
from backcast.model.document import Document
from backcast.model.live import LiveStep, StreamStatus
from backcast.model.manifest import LivePolicy, Manifest
from backcast.model.stream import StreamSpec, StreamWrite
from backcast.model.table import PublishMode

BEGUN, STOPPED, BACKED_UP, PLANNED, PUBLISHED, VERIFIED, RESUMED, DONE = (
    f"backfill.{name}"
    for name in ("begun", "stopped", "backed-up", "planned", "published", "verified", "resumed", "done")
)
GIVING_UP, GIVEN_UP = "backfill.giving-up", "backfill.given-up"
"""In between the stream that was stopped is started again."""


class Way(StrEnum):
    """How a backfill goes about the stream that writes the same table."""

    BESIDE = "beside"
    """The stream runs on."""
    PAUSE = "pause"
    """Stop it, back its checkpoint up, backfill, look, start it again."""


class StreamBackfill(Document):
    """One of them, as its steps tell."""

    stream: str
    pipeline: str
    start: str
    end: str
    way: Way
    why: str
    resume: bool
    """The stream was running and is started again at the end."""
    steps: tuple[str, ...] = ()
    """Names of those that are done, in order."""
    run_id: str | None = None
    backup: str | None = None
    """The folder of the checkpoint's backup."""
    external: bool = False
    """Others stop the stream, and start it again."""
    query_id: str | None = None
    """Of the query that others have stopped."""
    batch: int | None = None
    """The committed batch behind which it stands."""
    ends: dict[int, int] = Field(default_factory=dict)
    """By partition: the first offset that it has not read."""

    def has(self, step: str) -> bool:
        return step in self.steps

    @property
    def stands(self) -> bool:
        """The stream is stopped for it, and what it is to do before that goes on is not done."""
        return self.has(STOPPED) and not (self.has(VERIFIED) or self.has(GIVING_UP))

    @property
    def again(self) -> str:
        """The command that goes on with it."""
        return f"backcast stream backfill {self.stream} --from {self.start} --to {self.end}"

    def unplanned(self) -> StreamBackfill:
        """As before it was planned."""
        steps = tuple(each for each in self.steps if each != PLANNED)
        return self.model_copy(update={"steps": steps, "run_id": None})


def choose(spec: StreamSpec, status: StreamStatus, *, pause: bool) -> tuple[Way, str]:
    """The way, and why. Raises Refused when there is none."""
    settings = spec.pipeline.settings
    if pause:
        _refuse_far(spec, "without --pause the stream runs on, where its live policy lets it")
        return Way.PAUSE, "asked for with --pause"
    if not status.alive and not spec.external:
        return Way.BESIDE, "the stream is not running: there is nothing to pause"
    match settings.publish_mode, settings.live_policy:
        case PublishMode.APPEND, _:
            return Way.BESIDE, "rows are added, so no live row is in their way"
        case PublishMode.MERGE, _:
            return Way.BESIDE, "rows are merged by key and version, and live rows of other keys stay"
        case _, LivePolicy.FREEZE:
            return Way.BESIDE, "live policy `freeze` lets the stream wait between two batches until it is published"
        case _, LivePolicy.KEEP:
            return Way.BESIDE, "live policy `keep` leaves rows that arrive meanwhile beside the restated ones"
        case _, LivePolicy.RESTAGE:
            return Way.BESIDE, "live policy `restage` computes again what live rows reach"
        case _, LivePolicy.FAIL:
            pass
    if spec.external:
        return Way.BESIDE, "the stream is run by somebody else; if a row of it arrives in the window, publish refuses"
    _refuse_far(spec, f"set `publish: {{live: freeze}}`, or keep or restage, on pipeline {spec.pipeline.name}")
    return Way.PAUSE, "live policy `fail` would refuse as soon as a row of the stream arrives in the window"


def refuse_moved(there: StreamBackfill, now: int | None) -> None:
    """Raises Refused: others have started the stream before the run was published. `now`: its newest batch."""
    cancel = f"backcast cancel {there.run_id}, then " if there.run_id else ""
    raise Refused(
        f"stream {there.stream} was stopped behind batch {there.batch}, and its checkpoint has batch {now} now:"
        " somebody has started it again",
        hint=f"stop it again, then {cancel}the same command: it plans anew",
    )


def _refuse_far(spec: StreamSpec, instead: str) -> None:
    """Before anything is stopped: without the copy there is no way back for a stream that is paused."""
    copied = "stop it and copy its checkpoint yourself, and type this again"
    mounted = "mount it, and declare where it is then as `checkpoint`"
    if not spec.is_local:
        raise Refused(
            f"the checkpoint {spec.checkpoint} cannot be backed up from here, so stream {spec.name} is not paused",
            hint=f"{instead}; or {mounted if spec.external else copied}",
        )


def unfinished(steps: Iterable[LiveStep]) -> StreamBackfill | None:
    """The newest backfill of a stream that did not come to its end."""
    found: StreamBackfill | None = None
    for each in steps:
        if each.name == BEGUN:
            found = begun = StreamBackfill.model_validate(each.data)
        elif each.name in (DONE, GIVEN_UP):
            found = None
        elif found is not None and each.name.startswith("backfill."):
            if each.name == STOPPED:
                # Stopped once more: what was planned while it stood elsewhere does not count.
                found = begun
            told: dict[str, Any] = {name: each.data[name] for name in _TOLD if name in each.data}
            before = (name for name in found.steps if name != each.name)
            found = StreamBackfill.model_validate({**found.as_json(), **told, "steps": (*before, each.name)})
    return found


_TOLD = ("resume", "run_id", "backup", "query_id", "batch", "ends")


def refuse_giving_up(there: StreamBackfill) -> None:
    """Raises StateConflict for one that may have started its stream again: what it had still to do was given up."""
    if there.has(GIVING_UP):
        raise StateConflict(
            f"the backfill of {there.start} to {there.end} on stream {there.stream} is being given up",
            hint=f"{there.again} --give-up ends it",
        )


def refuse_another(there: StreamBackfill, start: str, end: str) -> None:
    if (there.start, there.end) != (start, end):
        raise StateConflict(
            f"a backfill of {there.start} to {there.end} on stream {there.stream} is not over",
            hint=f"{there.again} goes on with it, and with --give-up ends it",
        )


def refuse_unread(manifest: Manifest, spec: StreamSpec, ends: Mapping[int, int]) -> None:
    """Raises Refused when the run reads records that the stream has not: it would add them to the table again."""
    if spec.write is StreamWrite.MERGE:
        return
    logs = [pin.log for pin in manifest.inputs if pin.name == spec.input and pin.log is not None]
    ahead = [
        f"{each.partition}={max(each.start, ends.get(each.partition, 0))}..{each.end}"
        for log in logs
        for each in log.partitions
        if each.end > max(each.start, ends.get(each.partition, 0))
    ]
    if ahead:
        raise Refused(
            f"the window reaches records that stream {spec.name} has not read yet ({_some(ahead)}): once it does, their"
            " rows would be in the table twice",
            hint="let the stream read them first, or end the window earlier",
        )


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (f" and of {len(names) - 3} more partitions" if len(names) > 3 else "")
