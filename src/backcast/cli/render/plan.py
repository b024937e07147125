"""A plan for the person who must decide: what changes, from what, by which code, how long, what can go wrong."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Group, RenderableType
from rich.table import Table

from backcast.cli.render.layout import BAD, CAREFUL, GOOD, QUIET, STRONG, blocks, command, page, section, text
from backcast.cli.render.window import predicate_lines, window_text, windows_lines, zone_of
from backcast.cli.render.words import about, count, duration, moment, number, size, some
from backcast.model.finding import Finding, Severity
from backcast.model.layer import Consequence
from backcast.model.log import LogPin, span
from backcast.model.manifest import (
    CodeIdentity,
    Estimate,
    InputPin,
    LivePolicy,
    Manifest,
    Semantics,
    Settings,
    Survival,
)
from backcast.model.need import Reach
from backcast.model.pieces import pieces
from backcast.model.pipeline import TableFormat
from backcast.model.replay import ReplayPin
from backcast.model.report import Plan
from backcast.model.table import PublishMode
from backcast.model.watermark import WatermarkStrategy

_ORDER = {Severity.BLOCK: 0, Severity.WARN: 1, Severity.NOTE: 2}
_MARKS = {Severity.BLOCK: ("✗ BLOCK", BAD), Severity.WARN: ("! WARN ", CAREFUL), Severity.NOTE: ("· NOTE ", QUIET)}
_SURVIVAL = {
    Survival.OK: GOOD,
    Survival.UNBOUNDED: GOOD,
    Survival.AT_RISK: CAREFUL,
    Survival.UNKNOWN: CAREFUL,
    Survival.PARTIAL: BAD,
    Survival.GONE: BAD,
}


_PARTITIONS_SHOWN = 4
_LEAST_COST = 0.01


def render_plan(plan: Plan, *, next_step: bool = True) -> RenderableType:
    manifest = plan.manifest
    return page(
        _title(plan),
        blocks(
            [
                ("change", [*change_lines(manifest), *_now_there(manifest)]),
                ("from", [line for pin in manifest.inputs for line in _input(pin, manifest)]),
                ("replay", replay_lines(manifest.replay)),
                ("code", _code(manifest.code)),
                ("effort", _effort(manifest)),
                ("checks", rule_lines(manifest)),
                ("approval", approval_lines(manifest)),
                ("live rows", [live_rows_sentence(manifest.settings)]),
                ("throttle", _throttle(manifest.settings)),
                ("undo", [f"guaranteed for {duration(manifest.settings.undo_window_seconds)} after publish"]),
                ("why", why_lines(manifest)),
            ]
        ),
        _findings(plan.findings),
        command(_next(plan)) if next_step else None,
    )


def replay_lines(replay: ReplayPin | None) -> list[RenderableType]:
    """How a stream's result is computed anew, and from which of its states."""
    if replay is None:
        return []
    strategy = text("watermark ", (replay.strategy.value, STRONG), f": {_STRATEGIES[replay.strategy]}")
    because = text((f"because {replay.because}", QUIET))
    if not replay.streamed:
        return [text(f"stream {replay.stream}, as a ", ("batch", STRONG)), strategy, because]
    if replay.takeover:
        batches = "" if replay.batch is None else f", batches 0 to {replay.batch:,} of a new query"
        return [text(f"stream {replay.stream}, ", ("as a whole", STRONG), batches), "that query goes on as the stream"]
    state = "without state" if replay.batch is None else f"with its state after batch {replay.batch:,}"
    lines: list[RenderableType] = [text(f"stream {replay.stream}, as a ", ("stream", STRONG), f", {state}"), strategy]
    waits = f"it waits {duration(replay.delay_seconds)} of {replay.column} for late records"
    pace = "" if replay.most_per_trigger is None else f"{replay.most_per_trigger:,} records a batch"
    if replay.order is WatermarkStrategy.BOUNDED:
        lines.append(f"{waits}, {pace} at the most" if pace else waits)
    elif replay.order is WatermarkStrategy.SORTED and pace:
        lines.append(f"about {pace}")
    return [*lines, because]


_STRATEGIES = {
    WatermarkStrategy.SORTED: "records come in order of event time, so none is late",
    WatermarkStrategy.PARTITIONS: "each chunk of time comes whole before the next, so no record is late",
    WatermarkStrategy.BOUNDED: "as in the live stream, which drops what is late",
    WatermarkStrategy.BATCH: "every record is there before a row is computed, so none is late",
    WatermarkStrategy.CORRECTIONS: "what the stream wrote stands, but for what late records touch",
}


def rule_lines(manifest: Manifest) -> list[RenderableType]:
    """What will judge the stage besides the checks that every run gets: part of what is approved."""
    rules, gates = manifest.rules, manifest.settings.gates
    warn = [rule.name for rule in rules if rule.severity is Consequence.WARN]
    block = [rule.name for rule in rules if rule.severity is not Consequence.WARN]
    noticed = [" by ".join([f"metric {each.name}", *filter(None, [", ".join(each.by)])]) for each in gates.metrics]
    noticed += [
        name.replace("_", " ") for name in ("changed_rows", "changed_partitions") if getattr(gates, name) is not None
    ]
    found = [("rule", "rejects", "reject", block), ("rule", "warns", "warn", warn)]
    found.append(("gate", "asks for a look", "ask for a look", noticed))
    return [
        f"{count(len(names), noun)} that {one if len(names) == 1 else many}: {', '.join(names)}"
        for noun, one, many, names in found
        if names
    ]


def change_lines(manifest: Manifest) -> list[RenderableType]:
    """Which rows of which table, and how."""
    target, scope = manifest.target, manifest.scope
    windows = windows_lines(scope.windows, zone_of(scope.predicate)) if scope.windows else []
    how = _how(manifest)
    return [
        text((target.identity.name, STRONG), (f"  dataset {target.dataset}", QUIET)),
        *windows,
        *(text((line, CAREFUL)) for line in predicate_lines(scope.predicate)),
        f"{count(len(manifest.chunks), 'chunk')}; {how}",
    ]


def _how(manifest: Manifest) -> str:
    key = ", ".join(manifest.settings.key)
    match manifest.settings.publish_mode:
        case PublishMode.APPEND:
            return "rows are added in one commit; none that is there changes"
        case PublishMode.MERGE:
            return f"merged by {key} in one commit; a row yields only to one with a greater {manifest.settings.version}"
        case PublishMode.REPLACE if manifest.scope.exact:
            return "row-exact: other rows of the touched files are carried over unchanged"
        case PublishMode.REPLACE:
            return "whole partitions, replaced in one commit"


def _throttle(settings: Settings) -> list[RenderableType]:
    told = "" if settings.throttle is None else settings.throttle.told()
    return [told] if told else []


def live_rows_sentence(settings: Settings) -> str:
    """What becomes of rows that others write before publish."""
    if settings.publish_mode is PublishMode.APPEND:
        return "those that arrive meanwhile stay: an append meets no other row"
    if settings.publish_mode is PublishMode.MERGE:
        return "those that arrive meanwhile stay; one with a key that is merged makes publish refuse"
    match settings.live_policy:
        case LivePolicy.FAIL:
            return "if any arrive in scope before publish, publish refuses and changes nothing"
        case LivePolicy.KEEP:
            return "those that arrive in scope stay beside the restated rows; an equal key makes publish refuse"
        case LivePolicy.FREEZE:
            return "streams that are run here wait until it is published; rows of others make publish refuse"
        case LivePolicy.RESTAGE:
            return "chunks that some arrive in are staged again with newer inputs; the result must have every live key"


def why_lines(manifest: Manifest) -> list[RenderableType]:
    request = manifest.request
    asked = f"{request.kind} by {request.requested_by}" if request.requested_by else str(request.kind)
    return [text(", ".join(filter(None, (request.reason, request.ticket, asked))))]


def _now_there(manifest: Manifest) -> list[str]:
    """Rows that would be replaced."""
    target = manifest.target
    if manifest.settings.publish_mode is not PublishMode.REPLACE:
        return []
    where = "files it touches" if manifest.scope.exact else "scope"
    if not target.rows:
        return [f"in {where} now: nothing"]
    return [f"in {where} now: {count(target.rows, 'row')} in {count(target.files, 'file')} ({size(target.bytes)})"]


def _title(plan: Plan) -> RenderableType:
    if plan.refused:
        return text(("Plan of ", STRONG), (plan.manifest.pipeline, STRONG), ("  refused", BAD))
    recorded = ("recorded", GOOD) if plan.recorded else ("dry run, nothing recorded", CAREFUL)
    return text(("Plan ", STRONG), (plan.run_id, STRONG), "  ", recorded, (f"  {plan.sha256[:12]}", QUIET))


_MEANT = {
    Semantics.CURRENT: "what is accepted now",
    Semantics.AS_RECORDED: "what was known then",
    Semantics.CORRECTED: "what should have been known then",
    Semantics.AS_DECIDED: "what a decision of that time was made with",
}


def _input(pin: InputPin, manifest: Manifest) -> list[RenderableType]:
    if pin.log is not None:
        return _log_input(pin, pin.log, manifest)
    kind = "version" if pin.identity.format == TableFormat.DELTA else "snapshot"
    version = f"{kind} {pin.version}" if pin.version else f"no {kind} yet"
    amount = f"{count(pin.rows, 'row')}, {size(pin.bytes)} in {count(pin.files, 'file')}"
    name = "" if pin.name == pin.identity.name else f"{pin.name}: "
    return [
        text(name, (pin.identity.name, STRONG), f" at {version}", (f", {pin.asked}" if pin.asked else "", QUIET)),
        *([text(pin.semantics.value, (f": {_MEANT[pin.semantics]}", QUIET))] if pin.semantics is not None else []),
        *([_read_window(manifest), f"reads {amount}"] if pin.windowed else [f"reads all of it: {amount}"]),
        text((pin.survival, _SURVIVAL[pin.survival]), f"  {_survival(pin)}"),
    ]


def _log_input(pin: InputPin, log: LogPin, manifest: Manifest) -> list[RenderableType]:
    asked = pieces(each.only or each.ranges for each in log.slices.values())
    ranges = [f"{each.partition}={each.start}..{each.end}" for each in asked]
    partitions = count(len({each.partition for each in asked}), "partition")
    between = f", and {number(pin.rows - span(asked))} between them" if pin.rows > span(asked) else ""
    name = "" if pin.name == log.topic else f"{pin.name}: "
    window = [_read_window(manifest) + ", by event time"] if manifest.scope.windows else []
    return [
        text(name, (f"topic {log.topic}", STRONG), f", {log.isolation}"),
        *window,
        f"reads {count(span(asked), 'offset')} of {partitions}: {_shown(ranges)}{between}",
        *_archived(log),
        *([f"a stream can go on at {hand_over_text(log.hand_over)}"] if log.hand_over is not None else []),
        text((pin.survival, _SURVIVAL[pin.survival]), f"  {_survival(pin)}"),
    ]


def hand_over_text(offsets: Mapping[int, int]) -> str:
    """The offset of each partition at which a stream goes on."""
    return _shown([f"{partition}={offset}" for partition, offset in sorted(offsets.items())])


def _shown(parts: list[str]) -> str:
    most = _PARTITIONS_SHOWN
    shown = parts if len(parts) <= most else [*parts[: most - 1], f"{len(parts) - most + 1} more"]
    return ", ".join(shown) or "none"


def _archived(log: LogPin) -> list[RenderableType]:
    """How many of the offsets come from where."""
    if log.archive is None or not log.archive.ranges:
        return []
    old, rest = span(log.archive.part(log.ranges)), span(log.from_log)
    return [f"{count(old, 'offset')} from the archive {log.archive.place}, {count(rest, 'offset')} from the log"]


def _survival(pin: InputPin) -> str:
    until = moment(pin.survives_until) if pin.survives_until else None
    match pin.survival:
        case Survival.OK:
            archived = pin.log is not None and pin.log.archive is not None and not span(pin.log.from_log)
            return f"kept until {until}" if until else "kept by the archive" if archived else "kept"
        case Survival.AT_RISK:
            return f"expiry may remove it after {until}" if until else "expiry may remove it soon"
        case Survival.GONE:
            return "no longer there"
        case Survival.UNKNOWN:
            return "nothing says how long it is kept"
        case Survival.PARTIAL:
            return "some of it is no longer there"
        case Survival.UNBOUNDED:
            return "kept without limit"


def _read_window(manifest: Manifest) -> str:
    zone = zone_of(manifest.scope.predicate)
    windows = manifest.input_windows
    spans = window_text(windows[0], zone) if len(windows) == 1 else count(len(windows), "window")
    warm = [
        f"{duration(seconds)} {side}"
        for side, seconds in (("before", manifest.warm_up_before_seconds), ("after", manifest.warm_up_after_seconds))
        if seconds
    ]
    return f"{spans}, with {' and '.join(warm)} as warm-up" if warm else f"{spans}, no warm-up"


def _code(code: CodeIdentity) -> list[RenderableType]:
    commit = f"git {code.git_commit[:12]}" if code.git_commit else "not in git"
    first = text((code.transform, STRONG), f" version {code.version}, {commit}")
    if not code.git_dirty:
        return [first]
    differ = "differs" if len(code.git_dirty) == 1 else "differ"
    dirty = f"{count(len(code.git_dirty), 'file')} {differ} from the commit: {some(code.git_dirty)}"
    return [first, text((dirty, CAREFUL))]


def _effort(manifest: Manifest) -> list[RenderableType]:
    estimate = manifest.estimate
    span = about(estimate.seconds_low, estimate.seconds_high)
    logs = [pin.log is not None for pin in manifest.inputs]
    if any(logs):
        # Brokers tell how many there are, not how big.
        read = f"{number(estimate.input_rows)} {'records' if all(logs) else 'records and rows'}"
    else:
        read = f"{number(estimate.input_rows)} rows ({size(estimate.input_bytes)})"
    cost = cost_text(estimate)
    return [
        text((span, STRONG), (f"  {estimate.basis}", QUIET)),
        *([text((estimate.band, QUIET))] if estimate.band else []),
        f"reads {read}, writes about {number(estimate.output_rows)}{_limited(manifest)}",
        *([f"costs {cost}"] if cost else []),
    ]


def cost_text(estimate: Estimate) -> str:
    """`12.50 to 18.00 USD`; empty where nothing says what work costs."""
    low, high = estimate.cost_low, estimate.cost_high
    if low is None or high is None:
        return ""
    if high < _LEAST_COST:
        return f"less than {_LEAST_COST} {estimate.currency}"
    return f"{low:,.2f} {estimate.currency}" if low == high else f"{low:,.2f} to {high:,.2f} {estimate.currency}"


def _limited(manifest: Manifest) -> str:
    budget = manifest.budget
    if budget is None:
        return ""
    most = [f"{number(budget.rows)} rows"] if budget.rows is not None else []
    most += [duration(budget.seconds)] if budget.seconds is not None else []
    most += [f"{budget.cost:,.2f} {manifest.estimate.currency}"] if budget.cost is not None else []
    return f"; stops at {' or '.join(most)}"


def approval_lines(manifest: Manifest) -> list[RenderableType]:
    """Who must agree, how long that counts, and who is told by when."""
    need = manifest.approval
    if need is None:
        return [text(("no policy: no approval asked", QUIET))]
    people = f"{' and '.join(need.roles)}, {count(len(need.roles), 'person', 'people')}"
    said = people if need.roles else "nobody is asked"
    lines: list[RenderableType] = [
        text((said, CAREFUL if need.roles else QUIET), (f"  for {_reach(need.reach)}", QUIET))
    ]
    if need.roles:
        lines.append(f"an approval counts for {duration(need.expires_seconds)}")
    if need.notify:
        within = f" within {duration(need.within_seconds)} of the approval" if need.within_seconds is not None else ""
        lines.append(f"notify {', '.join(need.notify)}{within or ' before it is published'}")
    if need.confirm:
        lines.append("run and publish take --yes")
    return lines


def _reach(reach: Reach) -> str:
    days = "no window of time" if reach.days is None else f"{reach.days:g} day{'s' if reach.days != 1 else ''}"
    parts = [
        "the whole table" if reach.whole_table else days,
        str(reach.mode),
        f"tier {reach.tier}" if reach.tier else "",
    ]
    return ", ".join(filter(None, parts))


def _findings(findings: tuple[Finding, ...]) -> RenderableType | None:
    if not findings:
        return section("Findings", text(("✓ ", GOOD), "none"))
    return section("Findings", findings_grid(findings))


def findings_grid(findings: tuple[Finding, ...]) -> RenderableType:
    """What blocks first."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for each in sorted(findings, key=lambda finding: _ORDER[finding.severity]):
        body = Group(text(each.reason, (f"  {each.code}", QUIET)), text(("do: ", STRONG), each.remedy))
        grid.add_row(text(_MARKS[each.severity]), body)
    return grid


def _next(plan: Plan) -> str:
    if plan.refused:
        return "remove what blocks, then plan again"
    if not plan.recorded:
        return "the same command without --dry-run"
    need = plan.manifest.approval
    if need is not None and need.roles:
        return f"backcast approve {plan.run_id} --as {need.roles[0]}"
    return f"backcast run {plan.run_id}"
