"""What can be said about request files before anybody plans them: no Spark, no user code, nothing written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.errors import BackcastError, ConfigError, InvalidRequest, UnknownName
from backcast.model.finding import Finding, block, note, warn
from backcast.model.policy import Policy
from backcast.model.report import RequestCheck
from backcast.model.request import Kind, Request
from backcast.model.source import LogSource
from backcast.model.states import OPEN_STATES, VISIBLE_STATES
from backcast.model.time import Interval, joined
from backcast.model.topic_report import TopicOffsets
from backcast.plan.preflight import overlap_findings
from backcast.plan.why import LEAST, why_findings
from backcast.plan.windows import requested_windows
from backcast.project.request_file import WrittenRequest, read_request
from backcast.status import open_runs

if TYPE_CHECKING:
    from backcast.model.pipeline import PipelineSpec
    from backcast.ports import RunReader
    from backcast.project.config import Project

Offsets = Callable[[str, str], TopicOffsets]
_LOOK_BACK = 2_000
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Checking:
    """What request files are held against."""

    project: Project
    reader: RunReader
    policy: Policy | None
    now: datetime
    offsets: Offsets | None = None
    """Asks the brokers of a declared topic where a moment lies; None: nobody is asked."""


def check_requests(files: Sequence[Path], checking: Checking) -> list[RequestCheck]:
    """One answer for each file. Raises ConfigError, with file and line, for what cannot be understood."""
    asked = [_understood(read_request(file), checking.project) for file in files]
    return [_check(each, asked[:place], checking) for place, each in enumerate(asked)]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request as it was understood."""

    written: WrittenRequest
    spec: PipelineSpec
    windows: tuple[Interval, ...]

    @property
    def what(self) -> tuple[Request, tuple[Interval, ...]]:
        """What is to be done, however it is written down, without who and why."""
        return _what(self.written.request), joined(self.windows)


def _check(asked: _Asked, before: list[_Asked], checking: Checking) -> RequestCheck:
    written, spec, windows = asked.written, asked.spec, asked.windows
    request = written.request
    least = LEAST if checking.policy is None else checking.policy.reason or LEAST
    findings = [
        *why_findings(request, checking.policy, least=least),
        *_beside(asked, before),
        *_known(asked, checking.reader),
        *overlap_findings(windows, open_runs(checking.reader, spec.output.table)),
        *_future(windows, checking.now),
        *_retention(spec, windows, checking.offsets),
    ]
    length = sum((each.end - each.start).total_seconds() for each in windows)
    return RequestCheck(
        file=written.file, request=request, days=length / _DAY if windows else None, findings=tuple(findings)
    )


def _understood(written: WrittenRequest, project: Project) -> _Asked:
    request = written.request
    try:
        spec = project.pipeline(request.pipeline)
    except UnknownName as error:
        raise ConfigError(f"{written.at('pipeline')}: pipeline: {error.message}", hint=error.hint) from None
    try:
        return _Asked(written, spec, _windows(request, spec))
    except InvalidRequest as error:
        raise ConfigError(f"{written.at('from')}: {error.message}", hint=error.hint, file=written.file) from None


def _windows(request: Request, spec: PipelineSpec) -> tuple[Interval, ...]:
    """Empty for a request that is not about time."""
    timed = request.start or request.dates
    return requested_windows(request, spec.output.time.zone) if timed else ()


def _what(request: Request) -> Request:
    bare = {"reason": "", "ticket": "", "requested_by": "", "affected": None, "kind": Kind.RESTATEMENT}
    limits = {"max_rows": None, "max_cost": None, "max_seconds": None}
    when = {"start": None, "end": None, "dates": (), "exclude": ()}
    return request.model_copy(update=bare | limits | when)


def _beside(asked: _Asked, before: list[_Asked]) -> Iterator[Finding]:
    """Against the other files of the same call."""
    for other in before:
        file = other.written.file
        if other.what == asked.what:
            yield block("request.duplicate", f"{file} asks for the same", "keep one of the two files")
        elif other.spec.output.table == asked.spec.output.table and any(
            ours.overlaps(theirs) for ours in asked.windows for theirs in other.windows
        ):
            said = f"{file} asks for a part of the same window of {asked.spec.output.name}"
            yield warn("request.overlap", said, "one after the other: plan the second when the first is published")


def _known(asked: _Asked, reader: RunReader) -> Iterator[Finding]:
    for run in reader.runs(limit=_LOOK_BACK):
        if run.pipeline != asked.spec.name or run.state not in OPEN_STATES | VISIBLE_STATES:
            continue
        if _planned(reader.manifest(run.run_id).request, asked.spec) != asked.what:
            continue
        if run.state in OPEN_STATES:
            remedy = f"go on with that one (backcast status {run.run_id}), or cancel it"
            yield block("request.planned", f"run {run.run_id} is {run.state} and was asked for the same", remedy)
        else:
            said = f"run {run.run_id} published the same on {run.updated_at:%Y-%m-%d}"
            yield warn("request.published", said, "say in the reason what is different now")


def _planned(request: Request, spec: PipelineSpec) -> tuple[Request, tuple[Interval, ...]] | None:
    """None when it would not be understood today: the dataset's zone may have changed since."""
    try:
        return _what(request), joined(_windows(request, spec))
    except InvalidRequest:
        return None


def _future(windows: tuple[Interval, ...], now: datetime) -> Iterator[Finding]:
    if any(each.end > now for each in windows):
        said = "the window ends in the future: what is still to come cannot be restated"
        yield warn("request.future", said, "end it where the data ends")


def _retention(spec: PipelineSpec, windows: tuple[Interval, ...], offsets: Offsets | None) -> Iterator[Finding]:
    """A topic's brokers tell where its log begins. How long tables keep a version, nobody tells without Spark."""
    unknown = []
    for each in [each.dataset for each in spec.inputs]:
        if isinstance(each, LogSource) and each.archive is not None:
            continue
        begins = _log_begins(each, windows, offsets) if isinstance(each, LogSource) else None
        if begins is None:
            unknown.append(each.name)
        elif windows and begins > windows[0].start:
            said = f"topic {each.name} begins at {begins:%Y-%m-%d %H:%M} UTC: retention has removed what is older"
            yield warn("request.retention-passed", said, "begin the window later, or declare an archive of the topic")
    if unknown:
        yield note(
            "request.retention",
            f"whether {' and '.join(unknown)} still hold what the window needs was not looked at",
            "add --deep: it plans without recording, which takes Spark and asks the inputs",
        )


def _log_begins(source: LogSource, windows: tuple[Interval, ...], offsets: Offsets | None) -> datetime | None:
    """The latest moment at which one of the partitions begins, of those that have lost records; None when unknown."""
    if not windows or offsets is None:
        return None
    try:
        found = offsets(source.name, windows[0].start.isoformat())
    except BackcastError:
        return None
    cut = [each for each in found.partitions if each.log_start > 0 and each.offset == each.log_start]
    times = [each.record_time for each in cut if each.record_time is not None]
    return max(times, default=windows[0].start)
