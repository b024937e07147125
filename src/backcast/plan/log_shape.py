"""The shape of a run that appends or merges what a topic holds: slices of offsets instead of windows of time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise

from backcast.errors import InvalidRequest
from backcast.model.finding import Finding, block, warn
from backcast.model.log import LogPin, Ranges, span
from backcast.model.manifest import ChunkPlan, CodeIdentity, InputPin, Manifest
from backcast.model.pieces import layers, pieces
from backcast.model.pipeline import InputSpec, PipelineSpec
from backcast.model.request import Request
from backcast.model.run import Run
from backcast.model.scope import EVERYTHING
from backcast.model.source import LogSource
from backcast.model.states import RunState
from backcast.model.table import PublishMode
from backcast.model.time import Interval
from backcast.model.words import many
from backcast.plan.windows import requested_windows

MOST_SLICES = {PublishMode.APPEND: 60, PublishMode.MERGE: 1}
"""Of one key only the newest record may be merged, and the older one may lie in a later slice."""
_OFFSETS = ("offsets", "record_time", "checkpoint")
"""What a request may say instead of a window of event time."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def driving_log(spec: PipelineSpec) -> InputSpec:
    """The input whose offsets cut the run into chunks. Raises InvalidRequest unless there is exactly one."""
    logs = [each for each in spec.inputs if isinstance(each.dataset, LogSource)]
    mode = spec.settings.publish_mode
    if len(logs) != 1:
        raise InvalidRequest(
            f"pipeline {spec.name} publishes by {mode}, which needs exactly one input that is a topic; it has"
            f" {len(logs)}",
            hint="use `publish: {mode: replace}`, or read one topic",
        )
    windowed = [each.name for each in spec.inputs if each.windowed and each not in logs]
    if windowed:
        raise InvalidRequest(
            f"pipeline {spec.name} is cut by offsets: nobody can say which part of input {windowed[0]} a chunk needs",
            hint=f"read it whole: inputs: {{{windowed[0]}: {{dataset: ..., window: all}}}}",
        )
    return logs[0]


def slice_chunks(pin: InputPin, window: Interval | None, now: datetime) -> tuple[ChunkPlan, ...]:
    """One chunk for each slice that was pinned."""
    if pin.log is None:
        raise InvalidRequest(f"input {pin.name} is no topic")
    when = window or Interval(start=_EPOCH, end=now)
    return tuple(ChunkPlan(id=name, window=when, predicate=EVERYTHING) for name in pin.log.slices)


def asked_window(request: Request, zone: str) -> Interval | None:
    """Event time that records must have; None when offsets say what is read. Raises InvalidRequest for two windows.

    Records that a window's run set aside must still lie in that window when they are taken up again.
    """
    if any(getattr(request, name) is not None for name in _OFFSETS) and not (request.retries and request.start):
        return None
    windows = requested_windows(request, zone)
    if any(earlier.end != later.start for earlier, later in pairwise(windows)):
        raise InvalidRequest(
            "days with others in between are asked for, and what is appended or merged is one window of a topic",
            hint="make one request for each",
        )
    return Interval(start=windows[0].start, end=windows[-1].end)


def refuse_log_options(request: Request, mode: PublishMode) -> None:
    """A window of event time is what `replace` needs; offsets only say what is read."""
    given = [name for name in _OFFSETS if getattr(request, name) is not None]
    if mode is PublishMode.REPLACE and given:
        option = f"--{given[0].replace('_', '-')}"
        raise InvalidRequest(
            f"{option} says what to read, and `publish: {{mode: replace}}` needs to know which rows to replace",
            hint="ask for a window with --from and --to, or use mode append or merge",
        )
    if mode is not PublishMode.REPLACE and request.where:
        raise InvalidRequest(
            f"--where says which rows to replace, and `publish: {{mode: {mode}}}` replaces none",
            hint="filter in the transform, or use mode replace",
        )
    if len(given) > 1 or (given and (request.start or request.dates) and not request.retries):
        raise InvalidRequest(
            "give one of --from and --to, --on, --offsets, --record-time and --checkpoint", hint="leave out the others"
        )


def merge_findings(spec: PipelineSpec) -> list[Finding]:
    if spec.settings.publish_mode is not PublishMode.MERGE:
        return []
    lacking = [name for name, value in (("key", spec.output.key), ("version", spec.output.version)) if not value]
    return [
        block(
            "merge.needs-key-and-version",
            f"merging needs `{name}` on dataset {spec.output.name}: which rows are the same, and which is newer",
            f"declare `{name}` under datasets.{spec.output.name}",
        )
        for name in lacking
    ]


def repeat_findings(
    request: Request, code: CodeIdentity, inputs: tuple[InputPin, ...], published: Iterable[tuple[Run, Manifest]]
) -> list[Finding]:
    """Appends of the same offsets that the table has already. The same code would add the same rows once more.

    A run that set records aside has read them, and did not append them.
    """
    found = []
    published = tuple(published)
    set_aside_by = _retried(request, published)
    for run, other in published:
        if run.run_id in set_aside_by:
            continue
        shared = sum(_shared(one, two) for one in _logs(inputs) for two in _logs(other.inputs))
        if not shared:
            continue
        same = _is_same(code, other.code) and [*map(_reads, inputs)] == [*map(_reads, other.inputs)]
        if same and run.state is not RunState.SUPERSEDED:
            found.append(
                block(
                    "append.already-there",
                    f"run {run.run_id} has appended exactly these offsets with exactly this code",
                    f"nothing to do; to append them anew, take that back first: backcast undo {run.run_id}",
                )
            )
        else:
            found.append(
                warn(
                    "append.overlap",
                    f"run {run.run_id} has appended {many(shared, 'offset')} of these already",
                    f"their rows will be there twice; to avoid that: backcast undo {run.run_id}, or ask for others",
                )
            )
    return found


def _is_same(one: CodeIdentity, other: CodeIdentity) -> bool:
    names = ("transform", "version", "files", "packages", "config")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _reads(pin: InputPin) -> object:
    """What of an input decides the rows."""
    return (pin.identity.uuid, pin.version) if pin.log is None else (pin.log.topic_id, pieces(_asked(pin.log)))


def _logs(inputs: Iterable[InputPin]) -> list[LogPin]:
    return [pin.log for pin in inputs if pin.log is not None]


def _shared(one: LogPin, other: LogPin) -> int:
    """Offsets that both read."""
    if one.topic_id != other.topic_id:
        return 0
    left = layers(_asked(one), without=_asked(other))
    return span(pieces(_asked(one))) - sum(map(span, left))


def _asked(log: LogPin) -> list[Ranges]:
    """Offsets whose rows were asked for."""
    return [each.only or each.owned for each in log.slices.values()]


def _retried(request: Request, published: Iterable[tuple[Run, Manifest]]) -> frozenset[str]:
    """The run whose records are taken up again, and those that had set them aside before it."""
    earlier = {run.run_id: manifest.request.retries for run, manifest in published}
    found: set[str] = set()
    name = request.retries
    while name is not None and name not in found:
        found.add(name)
        name = earlier.get(name)
    return frozenset(found)
