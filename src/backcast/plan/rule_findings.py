"""Rules and gates against the table: what they cannot be asked is told before a run, not after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backcast.errors import BackcastError
from backcast.model.finding import Finding, block, warn
from backcast.model.manifest import InputPin, Settings, uncountable
from backcast.model.masked import not_among
from backcast.model.pipeline import Job
from backcast.model.replay import ReplayPin
from backcast.model.rule import AGAINST_BASE, NO_GATES, Per, Rule, RuleKind
from backcast.model.scope import Scope
from backcast.model.table import Column, PublishMode
from backcast.ports import Source
from backcast.ports.rules import RuleCode, RuleEngine, RuleFrames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NUMBERS = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
_TIMES = ("date", "timestamp", "timestamp_ntz")
_TEXTS = ("string", "char", "varchar")
_FITTING = {
    RuleKind.PATTERN: _TEXTS,
    RuleKind.LENGTH: (*_TEXTS, "binary", "array", "map"),
    RuleKind.FRESH: _TIMES,
    RuleKind.SUM: _NUMBERS,
    RuleKind.MEAN: _NUMBERS,
    RuleKind.RANGE: (*_NUMBERS, *_TIMES, *_TEXTS),
    RuleKind.ACCEPTED: (*_NUMBERS, *_TIMES, *_TEXTS, "boolean"),
    RuleKind.DRIFT: (*_NUMBERS, *_TIMES, *_TEXTS, "boolean"),
    RuleKind.MONOTONIC: (*_NUMBERS, *_TIMES, *_TEXTS),
}


@dataclass(frozen=True, slots=True)
class RuleLook:
    """What a plan needs to look at rules."""

    engine: RuleEngine
    code: Callable[[], RuleCode]
    source: Callable[[str], Source]


@dataclass(frozen=True, slots=True)
class Plain:
    """The table as it is, and the inputs; no row of them is read."""

    rows: Callable[[], DataFrame]
    inputs: Callable[[], Mapping[str, DataFrame]]
    job: Job


def look_at_rules(
    settings: Settings, columns: tuple[Column, ...], inputs: tuple[InputPin, ...], look: RuleLook | None, plain: Plain
) -> list[Finding]:
    """Everything that can be told without running a rule. What Spark says is asked for only if names and types fit."""
    wrong = rule_findings(settings, columns, inputs)
    if wrong or look is None or not (settings.rules or settings.gates.metrics):
        return wrong
    rows = plain.rows()
    found = analysed_rules(settings, rows, look.engine, look.source)
    if any(rule.kind is RuleKind.SQL or _counts_some(rule) for rule in settings.rules):
        inputs_as_read = plain.inputs()
        found += analysed_counts(settings, inputs_as_read, look.engine)
        found += analysed_queries(settings, rows, inputs_as_read, plain.job, look.code)
    return found


def rule_findings(settings: Settings, columns: tuple[Column, ...], inputs: Iterable[InputPin]) -> list[Finding]:
    """What names, types and the publish mode tell. Pure."""
    types = {column.name: column.type for column in columns}
    pins = {pin.name: pin for pin in inputs}
    found = [finding for rule in settings.rules for finding in _rule(rule, types, pins, settings.publish_mode)]
    found += [_unknown("`masked`", name, types) for name in not_among(settings.masked, types)]
    if settings.gates != NO_GATES and settings.publish_mode is PublishMode.APPEND:
        found.append(
            block(
                "rules.no-base",
                "gates compare with the base, and a run that appends replaces no row",
                "leave the gates out of this pipeline and its dataset",
            )
        )
    elif settings.publish_mode is PublishMode.MERGE:
        found += _of_a_merge(settings)
    if settings.publish_mode is not PublishMode.REPLACE:
        whole = [rule.name for rule in settings.rules if rule.per is Per.PARTITION]
        if whole:
            found.append(
                warn(
                    "rules.one-part",
                    f"{_by(whole)} by partition, and the rows of a run that adds rows are judged together",
                    "say `per: scope`, so that the numbers are read as what they are",
                )
            )
    return found


def _of_a_merge(settings: Settings) -> Iterable[Finding]:
    """Whatever a merge changes, it changes all of the one part that it has."""
    parted = [metric.name for metric in settings.gates.metrics if metric.per is Per.PARTITION]
    if settings.gates.changed_partitions is not None or parted:
        yield block(
            "rules.one-part",
            "a gate asks for partitions, and the rows of a run that merges are judged together",
            "leave `changed_partitions` and metrics `per: partition` out: take `changed_rows` or metrics of the scope",
        )


def _by(names: list[str]) -> str:
    return f"rule {names[0]!r} is asked for" if len(names) == 1 else f"rules {', '.join(names)} are asked for"


def _rule(rule: Rule, types: Mapping[str, str], inputs: Mapping[str, InputPin], mode: PublishMode) -> Iterable[Finding]:
    named = [*rule.columns, *rule.by, *rule.order]
    for name in dict.fromkeys(named):
        if name not in types:
            yield _unknown(f"rule {rule.name!r}", name, types)
    fitting = _FITTING.get(rule.kind)
    for name in rule.columns if fitting else ():
        if name in types and types[name].partition("(")[0].partition("<")[0] not in (fitting or ()):
            yield block(
                "rules.type",
                f"rule {rule.name!r}: column {name!r} is {types[name]}, which {rule.kind} cannot judge",
                f"{rule.kind} is about columns of type {', '.join(fitting or ())}",
            )
    if rule.input is not None and rule.input not in inputs:
        yield block(
            "rules.unknown-input",
            f"rule {rule.name!r}: the pipeline has no input {rule.input!r}",
            f"its inputs are {', '.join(inputs)}",
        )
    elif rule.input is not None and rule.per is Per.PARTITION and not inputs[rule.input].windowed:
        yield block(
            "rules.no-time",
            f"rule {rule.name!r} is asked for by partition, and input {rule.input} is read whole: none of its rows is "
            "of one partition",
            "say `per: scope`, or count with a `sql` rule",
        )
    if rule.kind in AGAINST_BASE and mode is PublishMode.APPEND:
        yield block(
            "rules.no-base",
            f"rule {rule.name!r} compares with the base, and a run that appends replaces no row",
            "leave it out of this pipeline and its dataset",
        )


def _unknown(what: str, name: str, types: Mapping[str, str]) -> Finding:
    return block(
        "rules.unknown-column",
        f"{what} names column {name!r}, which the table does not have",
        f"its columns are {', '.join(sorted(types))}",
    )


def analysed_rules(
    settings: Settings, rows: DataFrame, engine: RuleEngine, source: Callable[[str], Source]
) -> list[Finding]:
    """What Spark says about conditions, values, patterns and metrics, and what the other datasets have. No job."""
    found = [
        block("rules.condition", f"{name!r}: {text}", "correct the rule or the gate in backcast.yaml")
        for name, text in engine.problems(rows, settings.rules, settings.gates.metrics)
    ]
    for rule in (each for each in settings.rules if each.dataset is not None):
        have = {column.name for column in source(str(rule.dataset)).facts().identity.columns}
        found += [
            block(
                "rules.unknown-column",
                f"rule {rule.name!r}: dataset {rule.dataset} has no column {name!r}",
                f"its columns are {', '.join(sorted(have))}",
            )
            for name in rule.to
            if name not in have
        ]
    return found


def _counts_some(rule: Rule) -> bool:
    return rule.kind is RuleKind.ROWS and rule.where is not None


def analysed_counts(settings: Settings, inputs: Mapping[str, DataFrame], engine: RuleEngine) -> list[Finding]:
    """A condition on `rows` is about the rows of the input, too. No job."""
    found = []
    for rule in settings.rules:
        if not _counts_some(rule) or rule.input is None or rule.input not in inputs:
            continue
        found += [
            block(
                "rules.condition",
                f"{rule.name!r}, over input {rule.input}: {text}",
                "name columns that the table and the input both have, or count with a `sql` rule",
            )
            for _, text in engine.problems(inputs[rule.input], [rule], ())
        ]
    return found


def uncounted_findings(settings: Settings, scope: Scope, replay: ReplayPin | None) -> list[Finding]:
    """Rules that this run cannot be held to, while others of the pipeline are."""
    left_out = [rule.name for rule in uncountable(settings, scope, replay)]
    if not left_out:
        return []
    why = "--where asks for part of an input's rows" if scope.is_part else "a streaming query reads the input"
    return [
        warn(
            "rules.not-counted",
            f"{_by(left_out)} and left out: {why}, so the number of its rows says nothing",
            "count with a `sql` rule, or look at the numbers by chunk in the verdict",
        )
    ]


def analysed_queries(
    settings: Settings, rows: DataFrame, inputs: Mapping[str, DataFrame], job: Job, code: Callable[[], RuleCode]
) -> list[Finding]:
    """Queries are analysed over the table and the inputs, and not run."""
    found = []
    for rule in settings.rules:
        if rule.kind is not RuleKind.SQL:
            continue
        try:
            code().apply(rule, RuleFrames(rows, rows, inputs, job))
        except BackcastError as error:
            found.append(block("rules.query", f"rule {rule.name!r}: {error.message}", "correct the query"))
    return found
