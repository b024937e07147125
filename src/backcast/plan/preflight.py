"""Findings: everything worth knowing before a run starts, each with a reason and a remedy.

Pure: facts in, findings out.
"""

from __future__ import annotations

from collections.abc import Iterable

from backcast.model.analysis import Analysis
from backcast.model.column import TimeKind
from backcast.model.finding import Finding, block, note, warn
from backcast.model.manifest import CodeIdentity, InputPin, LivePolicy, Manifest, Settings, Survival
from backcast.model.pipeline import Dataset, Relation
from backcast.model.request import Request
from backcast.model.run import Run
from backcast.model.scope import Scope
from backcast.model.source import LogSource
from backcast.model.states import RunState
from backcast.model.table import MANY_SMALL, SMALL_FILE, Column, FileList, TableFacts, TableIdentity
from backcast.model.time import Interval, joined
from backcast.model.words import many

_TYPES = {
    TimeKind.DATE: ("date",),
    TimeKind.TIMESTAMP: ("timestamp",),
    TimeKind.TIMESTAMP_NTZ: ("timestamp_ntz",),
    TimeKind.STRING: ("string", "char", "varchar"),
    TimeKind.INTEGER: ("tinyint", "smallint", "int", "bigint"),
}


def table_findings(dataset: Dataset, facts: TableFacts, files: FileList, request: Request) -> list[Finding]:
    """What dataset and table say about each other. What the table's format forbids, its target tells."""
    found = [*_unknown_columns(dataset, facts, request), *misfit_columns(dataset, facts.identity, "target")]
    table = facts.identity.name
    if not facts.identity.partition_fields:
        found.append(
            warn(
                "target.unpartitioned",
                f"{table} has no partitions: files that hold a row of the window are rewritten whole",
                "nothing to do; partition the table by time to make restatements cheaper",
            )
        )
    small = [file for file in files.files if file.size < SMALL_FILE]
    if len(small) > MANY_SMALL and files.size / len(files.files) < SMALL_FILE:
        found.append(
            note(
                "target.small-files",
                f"{len(small)} of {len(files.files)} files in scope are smaller than 8 MiB",
                "compact the table when reading it is slow; nothing to do for this run",
            )
        )
    if dataset.streaming_readers:
        found.append(
            warn(
                "target.streaming-readers",
                f"{', '.join(dataset.streaming_readers)} read {table} as a stream and stop at an overwrite",
                "restart them so that they skip rewrites (Iceberg: streaming-skip-overwrite-snapshots, Delta:"
                " skipChangeCommits), or pause them around the publish",
            )
        )
    return found


def _unknown_columns(dataset: Dataset, facts: TableFacts, request: Request) -> Iterable[Finding]:
    have = {column.name for column in facts.identity.columns}
    wanted = [("time column", column.column) for column in dataset.time_columns]
    wanted += [("key column", name) for name in dataset.key]
    wanted += [("version column", dataset.version)] if dataset.version else []
    wanted += [("column of --where", clause.column) for clause in request.where]
    for role, name in wanted:
        if name not in have:
            yield block(
                "target.unknown-column",
                f"{facts.identity.name} has no column {name!r}, which is the {role}",
                f"its columns are {', '.join(sorted(have))}",
            )


def misfit_columns(dataset: Relation | LogSource, identity: TableIdentity, side: str) -> Iterable[Finding]:
    """Time columns whose type is not of the declared kind. A day read as an instant, or a wall clock time as one with
    a zone, would compare without complaint and shift the scope by hours. `side` is target or input.
    """
    types = {column.name: column.type for column in identity.columns}
    for column in dataset.time_columns:
        found = types.get(column.column)
        if found is not None and found.partition("(")[0] not in _TYPES[column.kind]:
            yield block(
                f"{side}.time-kind",
                f"column {column.column!r} of {identity.name} is {found}, but declared as kind {column.kind}",
                f"declare the kind that fits the column in `time` or `partition` of dataset {dataset.name}",
            )


def scope_findings(asked: tuple[Interval, ...], scope: Scope, files: FileList, *, old_specs: bool) -> list[Finding]:
    """What became of the window, and whether there is anything in it."""
    found = []
    if old_specs:
        found.append(
            note(
                "scope.old-partition-spec",
                "some files in scope were written under an older partition spec",
                "nothing to do: they are rewritten row by row",
            )
        )
    if scope.exact:
        found.append(
            note(
                "scope.row-exact",
                "the scope cuts files: rows around it are carried over unchanged",
                "nothing to do; whole partitions would be cheaper",
            )
        )
    elif scope.windows != joined(asked):
        first, last = scope.windows[0].start, scope.windows[-1].end
        found.append(
            warn(
                "scope.widened",
                f"the window cuts partitions and was widened to {first:%Y-%m-%d %H:%M} .. {last:%Y-%m-%d %H:%M} UTC",
                "set `cut: exact` on the pipeline to keep to the window row by row",
            )
        )
    if not files.files:
        found.append(
            note(
                "scope.empty-now", "the table holds no row in this window yet", "nothing to do if this is a first fill"
            )
        )
    return found


def input_findings(inputs: Iterable[InputPin], target_table: str) -> list[Finding]:
    found = []
    windowed = [pin for pin in inputs if pin.windowed]
    if windowed and not any(pin.rows for pin in windowed):
        found.append(
            warn(
                "input.empty",
                "no input has a row in this window: the scope would become empty",
                "check the window and the time column; go on only if empty is the right answer",
            )
        )
    for pin in (each for each in inputs if each.log is None):
        if pin.survival is Survival.GONE:
            found.append(block("input.gone", f"input {pin.name} at version {pin.version} is gone", "plan again"))
        elif pin.survival is Survival.AT_RISK:
            found.append(
                warn(
                    "input.at-risk",
                    f"input {pin.name} may expire at {pin.survives_until:%Y-%m-%d %H:%M} UTC, before the run may end",
                    _keep_alive(pin),
                )
            )
        elif pin.survival is Survival.UNKNOWN:
            found.append(
                note(
                    "input.survival-unknown",
                    f"nobody can say how long input {pin.name} keeps version {pin.version}",
                    "ask the table's owner about expiry",
                )
            )
        if pin.identity.name == target_table:
            found.append(
                note(
                    "input.self",
                    f"input {pin.name} is the target itself, read as it is now",
                    "make sure that restating a restated row is harmless",
                )
            )
    return found


def _keep_alive(pin: InputPin) -> str:
    table = pin.identity.name
    if pin.identity.format == "delta":
        return f"raise delta.deletedFileRetentionDuration of {table} in a quiet moment, or run VACUUM later"
    return f"ALTER TABLE {table} CREATE TAG keep_{pin.version} AS OF VERSION {pin.version}"


def code_findings(code: CodeIdentity, request: Request) -> list[Finding]:
    found = []
    if code.git_dirty:
        names = ", ".join(code.git_dirty[:5]) + (" and others" if len(code.git_dirty) > 5 else "")
        found.append(
            warn(
                "code.dirty",
                f"not committed in git: {names}",
                "commit, then plan again: the evidence will name a commit",
            )
        )
    elif code.git_commit is None:
        found.append(
            note(
                "code.no-git",
                "the project is not in a git repository",
                "put it into git, so that the evidence can name a commit",
            )
        )
    if not request.reason.strip():
        found.append(
            note("request.no-reason", "no reason was given", "add --reason so that others learn why history changed")
        )
    return found


def schema_findings(
    analysis: Analysis, columns: tuple[Column, ...], settings: Settings, added: frozenset[str]
) -> list[Finding]:
    """The transform's result against the table, and what its plan says about repeatability."""
    have, want = {column.name for column in analysis.columns}, {column.name for column in columns}
    found = [
        block(
            "schema.extra-column",
            f"the transform returns column {name!r}, which the table does not have",
            "drop it in the transform, or add it to the table first",
        )
        for name in sorted(have - want)
    ]
    found += [
        block(
            "schema.missing-column",
            f"the transform does not return column {name!r} of the table",
            "return it, as NULL if need be",
        )
        for name in sorted(want - have - added)
    ]
    found += _inexact_types(analysis, columns) if settings.exact_types else []
    undeclared = [name for name in analysis.nondeterministic if name not in settings.allow_nondeterministic]
    if undeclared:
        found.append(
            block(
                "code.nondeterministic",
                f"the transform calls {', '.join(undeclared)}: two runs would give different rows",
                "use ctx.clock() and ctx.derive_id(), or declare it under `nondeterministic`",
            )
        )
    if analysis.order_dependent:
        found.append(
            warn(
                "code.order-dependent",
                f"{', '.join(analysis.order_dependent)} may depend on the order of rows",
                "order by something unique, or make sure that ties do not matter",
            )
        )
    if analysis.opaque:
        found.append(
            note(
                "code.python-functions",
                f"Python functions cannot be looked into: {', '.join(analysis.opaque)}",
                "make sure that they use no clock, randomness or network",
            )
        )
    return found


def _inexact_types(analysis: Analysis, columns: tuple[Column, ...]) -> list[Finding]:
    """With `compatibility: exact` not even a cast that loses nothing is made."""
    types = {column.name: column.type for column in columns}
    return [
        block(
            "schema.not-exact",
            f"column {column.name!r} is {column.type} in the transform and {types[column.name]} in the table, which"
            " takes only its own types",
            f"cast it in the transform, .cast('{types[column.name]}'), or declare `compatibility: widen`",
        )
        for column in analysis.columns
        if column.name in types and column.type != types[column.name]
    ]


def pinning_findings(analysis: Analysis, inputs: Iterable[InputPin]) -> list[Finding]:
    """What the transform reads besides its declared inputs would be read at whatever version it has by then."""
    pins = tuple(inputs)
    archives = [pin.log.archive for pin in pins if pin.log is not None and pin.log.archive is not None]
    empty = {pin.identity.name for pin in pins if pin.version is None}
    declared = {name for pin in pins for name in (pin.identity.name, pin.identity.location)}
    declared |= {name for each in archives for name in (each.place, each.location)}
    loose = (set(analysis.tables) - declared) | (set(analysis.unpinned) - empty)
    found = [
        block(
            "input.undeclared",
            f"the transform reads {name} on its own, so nobody can say which version a run reads",
            "declare it under `inputs` of the pipeline and take it from there",
        )
        for name in sorted(loose)
    ]
    if analysis.files and not any(each.files for each in archives):
        found.append(
            warn(
                "input.files",
                "the transform reads files on its own; they are not pinned",
                "load them into a table and declare it under `inputs`",
            )
        )
    return found


def policy_findings(settings: Settings, scope: Scope) -> list[Finding]:
    """What the live policy needs of dataset and scope, and what it allows a run to do on its own."""
    policy, found = settings.live_policy, []
    if policy is LivePolicy.KEEP and not settings.key:
        found.append(
            block(
                "policy.keep-needs-key",
                "live policy `keep` must compare live keys with restated ones, and the dataset has no key",
                "declare `key` on the dataset, or use `live: fail`",
            )
        )
    if policy is not LivePolicy.RESTAGE:
        return found
    if not settings.key:
        found.append(
            block(
                "policy.restage-needs-key",
                "live policy `restage` must find every live key in the result, and the dataset has no key",
                "declare `key` on the dataset, or use `live: fail`",
            )
        )
    if scope.exact:
        found.append(
            block(
                "policy.restage-needs-partitions",
                "live policy `restage` stages whole partitions again, and this scope cuts files row by row",
                "set `cut: widen` on the pipeline and ask for whole partitions, or use `live: fail`",
            )
        )
    found.append(
        note(
            "policy.amendments",
            "when live rows arrive in scope, publish may move the base and read newer versions of the inputs"
            " for the chunks they reached and those that share a job with one of them",
            "nothing to do; a smaller `chunks_per_job` computes less again; `live: fail` reads only the pinned inputs",
        )
    )
    return found


def overlap_findings(manifest_windows: tuple[Interval, ...], others: Iterable[tuple[Run, Manifest]]) -> list[Finding]:
    """Open runs on the same table whose windows overlap."""
    found = []
    for run, other in others:
        if not any(ours.overlaps(theirs) for ours in manifest_windows for theirs in other.scope.windows):
            continue
        text = f"run {run.run_id} is {run.state} and overlaps this window"
        ways = "cancel it first" if run.state is RunState.REJECTED else "publish or cancel it first"
        remedy = f"{ways}: backcast cancel {run.run_id}"
        idle = run.state in (RunState.PLANNED, RunState.APPROVED)
        found.append(warn("overlap.planned-run", text, remedy) if idle else block("overlap.open-run", text, remedy))
    return found


def gc_findings(table: str, left: tuple[str, ...]) -> list[Finding]:
    """Runs that gc could have released days ago."""
    if not left:
        return []
    return [
        warn(
            "target.gc-overdue",
            f"nobody runs gc: the undo window of {many(len(left), 'run')} on {table} ended days ago, and what an undo"
            " would need is still in storage",
            "run `backcast gc` every day",
        )
    ]
