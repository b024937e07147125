"""Step 1: request -> manifest. Reads metadata and user code; writes nothing, runs no Spark job over data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, cast

from backcast.errors import ChunkFailed, PlanRefused, Refused
from backcast.model.archiving import REFERENCE
from backcast.model.finding import Finding, Severity, block
from backcast.model.late import OpenWindows
from backcast.model.lineage import LINEAGE_COLUMNS
from backcast.model.manifest import ChunkPlan, CodeIdentity, Estimate, InputPin, Manifest, Settings
from backcast.model.need import Budget
from backcast.model.partitions import partition_value
from backcast.model.pipeline import InputSpec, Job, PipelineSpec
from backcast.model.policy import Policy, need_under, reach_of
from backcast.model.replay import ReplayPin
from backcast.model.request import Request
from backcast.model.run import Run
from backcast.model.scope import EVERYTHING, Scope
from backcast.model.states import Execution
from backcast.model.table import FileList, PartitionField, PublishMode, TableFacts
from backcast.model.time import Interval, beyond_calendar
from backcast.plan import preflight
from backcast.plan.bootstrap import bootstrap_findings, bootstrapped, cut_findings
from backcast.plan.chunks import make_chunks, make_scope
from backcast.plan.combined import combined_findings
from backcast.plan.distribution import arrive_together
from backcast.plan.estimate import Amounts, Rate, Record, estimate
from backcast.plan.grouping import chunks_per_job, commit_findings
from backcast.plan.instead import instead_findings
from backcast.plan.limits import Room, budget_findings, budget_of, room_findings
from backcast.plan.log_findings import log_findings
from backcast.plan.log_shape import (
    MOST_SLICES,
    asked_window,
    driving_log,
    merge_findings,
    refuse_log_options,
    repeat_findings,
    slice_chunks,
)
from backcast.plan.open_findings import open_findings
from backcast.plan.pins import at_risk, pin_inputs, pin_target, read_windows
from backcast.plan.rejecting import without_rejected
from backcast.plan.replay import replay_findings
from backcast.plan.rule_findings import Plain, RuleLook, look_at_rules, uncounted_findings
from backcast.plan.why import why_findings
from backcast.plan.windows import Partitioning, partitioning, requested_windows
from backcast.ports import Engine, Input, LogInput, Target
from backcast.world import Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WRONG_COLUMNS = ("target.unknown-column", "target.time-kind", "input.time-kind")
"""Without the right columns there is no scope to plan with."""


@dataclass(frozen=True, slots=True)
class Planning:
    """Everything a plan looks at."""

    spec: PipelineSpec
    target: Target
    input: Callable[[InputSpec], Input]
    transform: Transform
    engine: Engine
    code: CodeIdentity
    settings: Settings
    memory: int
    """Bytes that Spark's tasks share."""
    now: datetime
    rate: Rate | None
    others: tuple[tuple[Run, Manifest], ...]
    """Open runs on the same table."""
    published: tuple[tuple[Run, Manifest], ...] = ()
    """Runs that appended to the same table; only an append asks."""
    record: Record | None = None
    """How well earlier estimates hit."""
    policy: Policy | None = None
    planned_by: tuple[str, ...] = ()
    room: Room = field(default_factory=Room)
    rules: RuleLook | None = None
    replay: ReplayPin | None = None
    left: tuple[str, ...] = ()
    """Runs on the same table that gc could have released days ago."""
    open: tuple[OpenWindows, ...] = ()
    """What streams into the same table have read and not written."""

    @property
    def asking(self) -> Policy | None:
        """The policy for this plan. A copy of a topic into its archive changes no number that anybody reads."""
        return None if self.code.transform == REFERENCE else self.policy


@dataclass(frozen=True, slots=True)
class _Shape:
    """The scope once the table was looked at."""

    asked: tuple[Interval, ...]
    scope: Scope
    chunks: tuple[ChunkPlan, ...]
    files: FileList
    old_specs: bool
    how: Partitioning


def make_manifest(request: Request, planning: Planning) -> Manifest:
    """The frozen plan with all findings. Raises InvalidRequest or UnknownName when there is nothing to plan."""
    dataset = planning.spec.output
    request = bootstrapped(request, planning.spec)
    refuse_log_options(request, planning.settings.publish_mode)
    facts = planning.target.facts()
    _refuse_wrong_columns(planning, facts, request)
    before, after = planning.spec.warm_up_before, planning.spec.warm_up_after
    try:
        shape, inputs = _pinned(request, planning, facts)
        input_windows = tuple(window.widened(before, after) for window in shape.scope.windows)
    except OverflowError as error:
        raise beyond_calendar() from error
    needed = read_windows(shape.chunks, before, after)
    policy = planning.asking
    guess = estimate(
        Amounts(sum(pin.rows for pin in inputs), sum(pin.bytes for pin in inputs), shape.files.rows, shape.files.size),
        planning.rate,
        planning.record,
        None if policy is None else policy.prices,
    )
    budget = budget_of(request, policy)
    inputs = tuple(at_risk(pin, planning.now, guess.seconds_high) for pin in inputs)
    findings = _findings(request, planning, _Found(facts, shape, inputs, guess, budget), needed)
    manifest = Manifest(
        request=request,
        pipeline=planning.spec.name,
        code=planning.code,
        inputs=inputs,
        target=pin_target(dataset, facts, shape.files),
        scope=shape.scope,
        input_windows=input_windows,
        warm_up_before_seconds=int(before.total_seconds()),
        warm_up_after_seconds=int(after.total_seconds()),
        chunks=shape.chunks,
        settings=_settled(planning, facts, shape, inputs, guess),
        estimate=guess,
        findings=tuple(sorted(findings, key=lambda each: list(Severity).index(each.severity))),
        planned_at=planning.now,
        budget=budget,
        replay=planning.replay,
    )
    if policy is None:
        return manifest
    reach = reach_of(manifest, dataset.tier, whole_table=_is_whole(planning, facts, shape, request))
    return manifest.model_copy(update={"approval": need_under(policy, reach, planning.planned_by)})


@dataclass(frozen=True, slots=True)
class _Found:
    """What was looked up before findings are made of it."""

    facts: TableFacts
    shape: _Shape
    inputs: tuple[InputPin, ...]
    guess: Estimate
    budget: Budget | None


def _findings(request: Request, planning: Planning, found: _Found, needed: Mapping[str, Interval]) -> list[Finding]:
    """All of them, each told by what it is about."""
    dataset, policy = planning.spec.output, planning.asking
    facts, inputs, guess, budget = found.facts, found.inputs, found.guess, found.budget
    return [
        *preflight.table_findings(dataset, facts, found.shape.files, request),
        *planning.target.findings(found.shape.files, timedelta(seconds=planning.settings.undo_window_seconds)),
        *(
            preflight.scope_findings(
                found.shape.asked, found.shape.scope, found.shape.files, old_specs=found.shape.old_specs
            )
            if planning.settings.publish_mode is PublishMode.REPLACE
            else [*merge_findings(planning.spec), *repeat_findings(request, planning.code, inputs, planning.published)]
        ),
        *bootstrap_findings(request, planning.spec, facts, planning.target),
        *cut_findings(request, inputs),
        *preflight.input_findings(inputs, facts.identity.name),
        *log_findings(inputs, planning.settings),
        *preflight.code_findings(planning.code, request),
        *preflight.policy_findings(planning.settings, found.shape.scope),
        *_commit_findings(planning, facts, found.shape),
        *instead_findings(request, planning.spec, found.shape.files.rows),
        *open_findings(planning.open, found.shape.scope, found.shape.how),
        *preflight.gc_findings(facts.identity.name, planning.left),
        *preflight.overlap_findings(found.shape.scope.windows, planning.others),
        *_result_findings(request, planning, found, needed),
        *look_at_rules(
            planning.settings, facts.identity.columns, inputs, planning.rules, _plain(planning, found, needed)
        ),
        *uncounted_findings(planning.settings, found.shape.scope, planning.replay),
        *replay_findings(
            planning.replay,
            inputs,
            found.shape.asked[0].start if found.shape.asked else planning.now,
            planning.spec.warm_up_after,
            planning.settings.recompute,
        ),
        *why_findings(request, policy),
        *budget_findings(budget, guess),
        *room_findings(guess, len(found.shape.chunks), planning.room),
    ]


def _is_whole(planning: Planning, facts: TableFacts, shape: _Shape, request: Request) -> bool:
    """Whether all that the table holds is replaced. A scope that cuts files is told by its days alone: what it touches
    is more than what it changes.
    """
    if shape.scope.exact or request.where or not shape.files.rows:
        return False
    return shape.files.rows >= planning.target.files(facts.version, EVERYTHING).rows


def _settled(
    planning: Planning, facts: TableFacts, shape: _Shape, inputs: tuple[InputPin, ...], guess: Estimate
) -> Settings:
    """The settings with what only this plan can tell. An undo is promised as long as somebody keeps what it needs."""
    settings, chunks, exact = planning.settings, len(shape.chunks), shape.scope.exact
    sliced = settings.publish_mode is not PublishMode.REPLACE
    read = list(zip(planning.spec.inputs, inputs, strict=True))
    window, kept = settings.undo_window_seconds, facts.removed_files_kept
    return settings.model_copy(
        update={
            "chunks_per_job": _group(planning, shape, guess),
            "rows_together": not exact
            and not sliced
            and arrive_together(read, shape.how, facts.identity.partition_fields, chunks),
            "undo_window_seconds": window if kept is None else min(window, int(kept.total_seconds())),
        }
    )


def _group(planning: Planning, shape: _Shape, guess: Estimate) -> int:
    asked = 1 if _alone(planning, shape) else planning.settings.chunks_per_job
    exact = shape.scope.exact
    return chunks_per_job(asked, len(shape.chunks), guess.input_bytes, planning.memory, exact=exact)


def _alone(planning: Planning, shape: _Shape) -> bool:
    """Whether chunks share no job. Joined, those named by time and partition would take in rows of one's time in
    another's partition; and rows of slices of a topic cannot be told apart any more.
    """
    sliced = planning.settings.publish_mode is not PublishMode.REPLACE
    return sliced or (shape.scope.exact and planning.spec.output.partition is not None)


def _commit_findings(planning: Planning, facts: TableFacts, shape: _Shape) -> list[Finding]:
    """The stage of a Delta table has a log of its own, and whoever asks for small jobs gets them."""
    if facts.identity.format != "iceberg" or not _alone(planning, shape):
        return []
    return commit_findings(len(shape.chunks), 1, exact=shape.scope.exact)


def _refuse_wrong_columns(planning: Planning, facts: TableFacts, request: Request) -> None:
    found = preflight.table_findings(planning.spec.output, facts, FileList(None, ()), request)
    found += [
        misfit
        for each in planning.spec.inputs
        if each.windowed
        for misfit in preflight.misfit_columns(each.dataset, planning.input(each).identity(), "input")
    ]
    wrong = [each for each in found if each.code in _WRONG_COLUMNS]
    if wrong:
        raise PlanRefused("; ".join(each.reason for each in wrong), hint=wrong[0].remedy)


def _pinned(request: Request, planning: Planning, facts: TableFacts) -> tuple[_Shape, tuple[InputPin, ...]]:
    """Scope, chunks and what they read: windows of time first, or offsets first where those cut the run."""
    spec = planning.spec
    if planning.settings.publish_mode is PublishMode.REPLACE:
        shape = _shape(request, planning, facts)
        needed = read_windows(shape.chunks, spec.warm_up_before, spec.warm_up_after)
        return shape, pin_inputs(spec.inputs, planning.input, needed, planning.now)
    log = driving_log(spec)
    window = asked_window(request, spec.output.time.zone)
    asked = () if window is None else (window,)
    opened = cast("LogInput", planning.input(log))
    pins = {log.name: opened.pin_offsets(request, window, planning.now, MOST_SLICES[planning.settings.publish_mode])}
    others = tuple(each for each in spec.inputs if each is not log)
    pins |= {each.name: each for each in pin_inputs(others, planning.input, {}, planning.now)}
    how = partitioning(spec.output.partition or spec.output.time, facts.identity.partition_fields)
    shape = _Shape(
        asked=asked,
        scope=Scope(windows=asked, predicate=EVERYTHING),
        chunks=slice_chunks(pins[log.name], window, planning.now),
        files=FileList(facts.version, ()),
        old_specs=False,
        how=how,
    )
    return shape, tuple(pins[each.name] for each in spec.inputs)


def _shape(request: Request, planning: Planning, facts: TableFacts) -> _Shape:
    """Scope and chunks; looked at twice when files of an older partition spec force a row-exact scope."""
    spec, dataset = planning.spec, planning.spec.output
    corrected = () if planning.replay is None else planning.replay.windows
    asked = corrected or requested_windows(request, dataset.time.zone)
    fields = facts.identity.partition_fields
    how = partitioning(dataset.partition or dataset.time, fields)
    scope = make_scope(asked, request.where, dataset, how, fields, spec.cut)
    files = planning.target.files(facts.version, scope.predicate)
    old_specs = not scope.exact and _has_old_specs(files, how, fields, request)
    if old_specs:
        scope = make_scope(asked, request.where, dataset, how, fields, spec.cut, force_exact=True)
        files = planning.target.files(facts.version, scope.predicate)
    return _Shape(asked, scope, make_chunks(scope, request.where, dataset, how), files, old_specs, how)


def _has_old_specs(files: FileList, how: Partitioning, fields: tuple[PartitionField, ...], request: Request) -> bool:
    """Whether a file lacks a partition field that makes the scope whole: that of time, or one that `--where` names."""
    asked = {clause.column for clause in request.where}
    cutting = {field.name for field in fields if field.transform == "identity" and field.source in asked}
    if how.field is not None:
        cutting.add(how.field.name)
    return any(partition_value(file.partition, name) is None for file in files.files for name in cutting)


def _frames(planning: Planning, inputs: tuple[InputPin, ...], windows: Mapping[str, Interval]) -> dict[str, DataFrame]:
    pairs = zip(planning.spec.inputs, inputs, strict=True)
    return {spec.name: planning.input(spec).read(pin, windows).rows for spec, pin in pairs}


def _dry_run(planning: Planning, windows: Mapping[str, Interval]) -> Job:
    whole = Interval(start=min(each.start for each in windows.values()), end=max(each.end for each in windows.values()))
    return Job(run_id="plan", execution=Execution.DRY_RUN, window=whole, clock=planning.now)


def _plain(planning: Planning, found: _Found, windows: Mapping[str, Interval]) -> Plain:
    return Plain(
        rows=lambda: planning.target.read(found.facts.version, found.shape.scope.predicate),
        inputs=lambda: _frames(planning, found.inputs, windows),
        job=_dry_run(planning, windows),
    )


def _result_findings(
    request: Request, planning: Planning, found: _Found, windows: Mapping[str, Interval]
) -> list[Finding]:
    """Ask the transform for its result over the pinned inputs and read the analysed plan; no row is computed."""
    facts, inputs = found.facts, found.inputs
    mode, chunks = planning.settings.publish_mode, len(found.shape.chunks)
    try:
        frames = _frames(planning, inputs, windows)
        rows = planning.transform.apply(frames, _dry_run(planning, windows))
        rows, wrong = without_rejected(planning.engine, rows, facts.identity.columns, inputs)
        topics = [] if mode is PublishMode.REPLACE else [frames[pin.name] for pin in inputs if pin.log is not None]
        analysis = planning.engine.analyse(rows, topics)
    except ChunkFailed as error:
        return [
            block("code.raises", error.message, error.hint or "run the transform with backcast.testing.check_transform")
        ]
    if wrong:
        return wrong
    columns = planning.settings.result_columns(facts.identity.columns)
    added = frozenset(LINEAGE_COLUMNS if planning.settings.lineage_columns else ())
    told = preflight.pinning_findings(analysis, inputs)
    told += combined_findings(request, mode, analysis.combines, inputs, chunks)
    told += preflight.schema_findings(analysis, columns, planning.settings, added)
    if not any(each.code.startswith("schema.") for each in told):
        have = {column.name for column in analysis.columns}
        try:
            planning.engine.conform(rows, tuple(column for column in columns if column.name in have))
        except Refused as error:
            told.append(block("schema.type", error.message, error.hint))
    return told
