"""Rules and gates of a run, measured and judged: one job over the stage, one over the base if anything asks for it.

Uniqueness, references, row counts of inputs and custom rules add one each. Rows are looked at again only to show some
that break a rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from backcast.errors import ChunkFailed
from backcast.model.diff import DiffRules
from backcast.model.manifest import InputPin, Manifest
from backcast.model.pipeline import Job
from backcast.model.rule import AGAINST_BASE, BY_ROW, CUSTOM, NO_GATES, OWN_JOB, Rule, RuleKind, RuleResult
from backcast.model.scope import EVERYTHING, Predicate
from backcast.model.table import Claim, NetChange, PublishMode
from backcast.model.time import Interval
from backcast.model.verdict import Check
from backcast.model.words import many
from backcast.ports import Input, Source, Target
from backcast.ports.comparing import Comparer, Comparing
from backcast.ports.rules import Complaint, RuleCode, RuleEngine, RuleFrames, Scan
from backcast.validate.gates import changed_parts, judge_gates
from backcast.validate.rules import Facts, distances_of, judge, numbers_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ALL_ROWS = "all rows"
_KIND = re.compile(r"([^:\[\]]{1,60}(:\w+)?: )?\w+(Error|Exception)\b(: \[[A-Z0-9_.]+\])?")
"""`checks.py:16: ValueError`, `judging the rules: SparkNumberFormatException: [CAST_INVALID_INPUT]`."""


@dataclass(frozen=True, slots=True)
class RuleHelp:
    """What rules need of the world besides the rows that are judged."""

    engine: RuleEngine
    code: Callable[[], RuleCode]
    """Loads user code."""
    source: Callable[[str], Source]
    """A declared dataset."""
    input: Callable[[str], Input]
    """An input of the pipeline, by its name."""
    comparer: Comparer
    diff_rules: DiffRules
    """How rows of the dataset are compared."""


@dataclass(frozen=True, slots=True)
class Judging:
    """The rows that are judged, and those that they are compared with."""

    run_id: str
    manifest: Manifest
    inputs: tuple[InputPin, ...]
    """As they were read in the end."""
    help: RuleHelp
    rows: DataFrame
    base: Callable[[], DataFrame]
    outside: Callable[[], DataFrame]
    """What the table holds besides the rows."""
    parts: Mapping[str, Predicate]
    digests: bool
    """Whether the rows' digests are wanted, too. Hashing every value costs as much as reading it."""
    proven: Callable[[Sequence[Claim]], frozenset[Claim]] = lambda _: frozenset()
    """Which claims metadata of the rows' files prove."""

    @property
    def window(self) -> Interval:
        """The scope's time, from its first moment to its end; that of its chunks where nobody asked for a time."""
        windows = self.manifest.scope.windows or tuple(chunk.window for chunk in self.manifest.chunks)
        return Interval(start=min(each.start for each in windows), end=max(each.end for each in windows))

    def ends(self) -> dict[str, datetime]:
        """When each part, and all of them, are over."""
        own = {chunk.id: chunk.window.end for chunk in self.manifest.chunks}
        return {"": self.window.end, **{name: own.get(name, self.window.end) for name in self.parts}}


@dataclass(frozen=True, slots=True)
class Versions:
    """What is judged of a table: one version of it, and the one that it is compared with."""

    target: Target
    base: str | None
    judged: str | None
    net: NetChange | None = None
    """Of a run that adds rows: the files that come and go. Only their rows are judged."""
    digests: bool = False
    """Whether digests of the rows are wanted, too."""
    live: str | None = None
    """What readers see, if that is judged: rows beside those judged are of this version, and not of the base."""
    replaced: Predicate | None = None
    """Of a canary: what its whole run will replace. No row of that is one beside those judged."""


def judging_of(
    run_id: str, manifest: Manifest, inputs: tuple[InputPin, ...], helped: RuleHelp, versions: Versions
) -> Judging:
    """The scope of a run; or, when it adds rows to what is there, the rows of the files that it changes."""
    target, base, judged = versions.target, versions.base, versions.judged
    around = versions.live or base
    if manifest.settings.publish_mode is PublishMode.REPLACE or versions.net is None:
        scope = manifest.scope.predicate
        return Judging(
            run_id=run_id,
            manifest=manifest,
            inputs=inputs,
            help=helped,
            rows=target.read(judged, scope),
            base=lambda: target.read(base, scope),
            outside=lambda: helped.engine.beside(target.read(around, EVERYTHING), versions.replaced or scope),
            parts={chunk.id: chunk.predicate for chunk in manifest.chunks},
            digests=versions.digests,
            proven=lambda claims: target.proven(judged, scope, claims),
        )
    added, removed = (frozenset(file.path for file in files) for files in (versions.net.added, versions.net.removed))

    def outside() -> DataFrame:
        every = frozenset(file.path for file in target.files(base, EVERYTHING).files)
        return target.read_files(base, every - removed - added, EVERYTHING)

    return Judging(
        run_id=run_id,
        manifest=manifest,
        inputs=inputs,
        help=helped,
        rows=target.read_files(judged, added, EVERYTHING),
        base=lambda: target.read_files(base, removed, EVERYTHING),
        outside=outside,
        parts={ALL_ROWS: EVERYTHING},
        digests=versions.digests,
    )


@dataclass(frozen=True, slots=True)
class Measured:
    """What became of the rules and gates, and the scan if it has digests; None when nobody wanted them or it failed."""

    scan: Scan | None
    results: tuple[RuleResult, ...]
    base: Scan | None = None
    """The same of the base."""

    def checks(self) -> tuple[Check, ...]:
        names = ("name", "passed", "detail", "layer", "consequence")
        return tuple(Check(**{name: getattr(each, name) for name in names}) for each in self.results)


def is_asked(manifest: Manifest) -> bool:
    """Whether there is any rule or gate."""
    return bool(manifest.settings.rules) or manifest.settings.gates != NO_GATES


def measure(judging: Judging) -> Measured:
    """Never raises because data is bad: a rule that cannot be judged has failed."""
    settings, engine = judging.manifest.settings, judging.help.engine
    rules, gates = judging.manifest.rules, settings.gates
    scanned = [rule for rule in rules if rule.kind not in OWN_JOB]
    compared = [rule for rule in rules if rule.kind in AGAINST_BASE]
    found: dict[str, RuleResult] = {}
    scan: Scan | None = None
    base: Scan | None = None
    noticed: list[RuleResult] = []
    # Gates tell by digests what has changed at all.
    digests = judging.digests or gates != NO_GATES
    try:
        proven = judging.proven([claim for rule in scanned for claim in rule.claims])
        scan = engine.scan(judging.rows, judging.parts, scanned, gates.metrics, digests=digests, proven=proven)
        if compared or gates != NO_GATES:
            base = engine.scan(judging.base(), judging.parts, compared, gates.metrics, digests=gates != NO_GATES)
        found = {rule.name: _scanned(judging, rule, scan, base) for rule in scanned}
        if base is not None:
            noticed = judge_gates(gates, scan, base, _changed_rows(judging, scan, base), settings.masked)
    except ChunkFailed as error:
        why = _why(error, settings.masked)
        found = {rule.name: failed(rule, why) for rule in scanned}
        if gates != NO_GATES:
            noticed = [failed(Rule(kind=RuleKind.SQL, name="gates"), why)]
    for rule in rules:
        if rule.kind in OWN_JOB:
            try:
                found[rule.name] = _alone(judging, rule)
            except ChunkFailed as error:
                found[rule.name] = failed(rule, _why(error, settings.masked))
    results = (*_with_samples(judging, [found[rule.name] for rule in rules]), *noticed)
    return Measured(scan if digests else None, results, base if gates != NO_GATES else None)


def _why(error: ChunkFailed, masked: tuple[str, ...]) -> str:
    """What code or Spark says about a value may quote it: where columns are masked, only what kind of error it is."""
    if not masked:
        return error.message
    kind = _KIND.match(error.message)
    return f"{kind[0] if kind else 'it failed'}; its message is not kept, because it may hold masked values"


def failed(rule: Rule, why: str, failing: int | None = None) -> RuleResult:
    return RuleResult(
        name=rule.name,
        kind=rule.kind,
        layer=rule.kind.layer,
        consequence=rule.severity,
        passed=False,
        detail=why,
        numbers={} if failing is None else {"failing": failing},
        failing_rows=failing,
    )


def _scanned(judging: Judging, rule: Rule, scan: Scan, base: Scan | None) -> RuleResult:
    numbers = numbers_of(rule, scan)
    masked = judging.manifest.settings.masked
    if rule.kind is RuleKind.DRIFT and base is not None:
        return judge(rule, Facts({}, distances=distances_of(rule, scan, base)), masked)
    if rule.kind is RuleKind.ROWS:
        sources = _input_rows(judging, rule, tuple(numbers))
        facts = Facts({name: {**own, "source": sources[name]} for name, own in numbers.items()})
        return judge(rule, facts, masked)
    before = None if base is None or rule.kind not in AGAINST_BASE else numbers_of(rule, base)
    return judge(rule, Facts(numbers, before, ends=judging.ends()), masked)


def _input_rows(judging: Judging, rule: Rule, names: tuple[str, ...]) -> dict[str, int]:
    """Rows of an input in the scope's own windows that the rule is about, without warm-up, as the run read them: by
    chunk, or under the one name that all rows have.
    """
    pin = next(each for each in judging.inputs if each.name == rule.input)
    windows = {chunk.id: chunk.window for chunk in judging.manifest.chunks}
    source = judging.help.input(pin.name)
    placed = source.placed(pin, windows) if names == tuple(windows) else None
    parts = dict.fromkeys(names, EVERYTHING) if placed is None else placed
    return judging.help.engine.counted(source.read(pin, windows).rows, parts, rule)


def _changed_rows(judging: Judging, scan: Scan, base: Scan) -> int | None:
    """Rows are compared only where digests tell that there is a difference."""
    settings = judging.manifest.settings
    if settings.gates.changed_rows is None:
        return None
    changed = changed_parts(scan, base)
    if not changed:
        return 0
    chosen = {name: judging.parts[name] for name in changed}
    engine = judging.help.engine
    before, after = (engine.within_parts(rows, chosen, judging.parts) for rows in (judging.base(), judging.rows))
    found = judging.help.comparer.count(before, after, Comparing(judging.help.diff_rules, chosen)).rows
    if found is None:
        return 0
    # Without a key, a row that changed is one that went and one that came.
    return found.differing if settings.key else max(found.added, found.removed)


def _alone(judging: Judging, rule: Rule) -> RuleResult:
    """A rule with a job of its own."""
    engine, settings = judging.help.engine, judging.manifest.settings
    if rule.kind in CUSTOM:
        return _custom(judging, rule)
    if rule.kind is RuleKind.UNIQUE:
        outside = judging.outside() if reaches_out(rule, judging.manifest) else None
        return judge(rule, Facts(engine.doubles(judging.rows, outside, judging.parts, rule)), settings.masked)
    rows, against = referenced(judging, rule)
    facts = Facts(engine.strangers(judging.rows, rows, judging.parts, rule), against=against)
    return judge(rule, facts, settings.masked)


def reaches_out(rule: Rule, manifest: Manifest) -> bool:
    """Whether a row outside the scope can have a key of one inside: not if the key alone says where a row belongs."""
    scope = {clause.column for clause in manifest.scope.predicate.clauses}
    return not scope or not scope <= set(rule.columns)


def referenced(judging: Judging, rule: Rule) -> tuple[DataFrame, str]:
    """Rows of the other dataset, as the run read it if it did, else as it is now; and which of both."""
    name = str(rule.dataset)
    table = judging.help.source(name)
    pin = next((each for each in judging.inputs if each.dataset == name and each.log is None), None)
    version = table.facts().version if pin is None else pin.version
    told = f"as it is now, version {version}" if pin is None else f"as it was read, version {version}"
    return table.read(version, EVERYTHING), told


def _custom(judging: Judging, rule: Rule) -> RuleResult:
    settings = judging.manifest.settings
    windows = {chunk.id: chunk.window for chunk in judging.manifest.chunks}
    wanted = rule.query or ""
    inputs = {
        pin.name: judging.help.input(pin.name).read(pin, windows).rows
        for pin in judging.inputs
        if pin.name.lower() in wanted.lower()
    }
    base = judging.base()
    frames = RuleFrames(judging.rows, base, inputs, custom_job(judging))
    found = judging.help.code().apply(rule, frames)
    if isinstance(found, Complaint):
        result = failed(rule, found.text, found.failing)
        return result.model_copy(update={"passed": found.passed})
    count, samples = judging.help.engine.told(found, (judging.rows, base), settings.masked)
    result = failed(rule, f"{many(count, 'row')} returned" if count else "no row", count)
    return result.model_copy(update={"passed": not count, "samples": samples})


def custom_job(judging: Judging) -> Job:
    clock = judging.manifest.planned_at
    return Job(run_id=judging.run_id, execution=judging.manifest.execution, window=judging.window, clock=clock)


def _with_samples(judging: Judging, results: Sequence[RuleResult]) -> list[RuleResult]:
    """Rows that break a rule are looked for only when there are some."""
    broken = {result.name for result in results if result.failing_rows and not result.samples}
    settings = judging.manifest.settings
    kinds = BY_ROW | {RuleKind.UNIQUE, RuleKind.REFERENCES}
    rules = [rule for rule in settings.rules if rule.name in broken and rule.kind in kinds]
    if not rules:
        return list(results)
    others = {}
    for rule in rules:
        if rule.kind is RuleKind.REFERENCES:
            others[rule.name] = referenced(judging, rule)[0]
        elif rule.kind is RuleKind.UNIQUE and reaches_out(rule, judging.manifest):
            others[rule.name] = judging.outside()
    try:
        found = judging.help.engine.samples(judging.rows, others, judging.parts, rules, settings.masked)
    except ChunkFailed:
        # They are an illustration: the numbers stand without them.
        found = {}
    return [each.model_copy(update={"samples": found.get(each.name, each.samples)}) for each in results]
