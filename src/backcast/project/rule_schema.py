"""The shape of `rules` and `gates` in `backcast.yaml`: a list of rules, each one key with what it needs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from backcast.model.document import Document, later
from backcast.model.layer import Consequence
from backcast.model.rule import Gates, Metric, Per, Rule, RuleKind
from backcast.project.problems import suggestion
from backcast.project.values import Duration, Identifier, Label, Share

_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def _list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _move(value: object) -> object:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", value) if isinstance(value, str) else None
    if found is None:
        raise ValueError(f"expected a share such as 50%, got {value!r}")
    return float(Decimal(found[1]) / 100)


def _module(text: str) -> str:
    if not _MODULE.fullmatch(text):
        raise ValueError(f"expected module:name such as checks:positive_margin, got {text!r}")
    return text


def _suite(text: str) -> str:
    inside = text.endswith(".json") and not text.startswith(("/", "~")) and ".." not in text.split("/")
    if not inside and not _MODULE.fullmatch(text):
        raise ValueError(f"expected a .json file of the project or module:name, got {text!r}")
    return text


Columns = Annotated[tuple[Identifier, ...], BeforeValidator(_list), Field(min_length=1)]
Text = Annotated[str, Field(min_length=1)]
Move = Annotated[float, BeforeValidator(_move)]
Length = Annotated[int, Field(ge=0)]


class RuleOptions(Document):
    """What every rule takes."""

    name: Annotated[str, Field(min_length=1, max_length=80)] | None = None
    severity: Literal["block", "warn"] = "block"
    where: Text | None = None

    def rule(self, kind: RuleKind) -> Rule:
        own = self.fields()
        per = Per(getattr(self, "per", Per.SCOPE))
        name = self.name or _named(kind, own)
        return Rule(kind=kind, name=name, severity=Consequence(self.severity), per=per, where=self.where, **own)

    def fields(self) -> dict[str, Any]:
        """What the rule has beyond that, as `Rule` calls it."""
        return {}


class RuleByPart(RuleOptions):
    per: Per = Per.SCOPE


class NotNullRule(RuleByPart):
    columns: Columns
    tolerance: Share = 0.0

    def fields(self) -> dict[str, Any]:
        return {"columns": self.columns, "tolerance": self.tolerance}


class UniqueRule(RuleByPart):
    columns: Columns

    def fields(self) -> dict[str, Any]:
        return {"columns": self.columns}


class RangeRule(RuleByPart):
    column: Identifier
    min: Text | None = None
    max: Text | None = None
    tolerance: Share = 0.0

    @model_validator(mode="after")
    def _bounded(self) -> RangeRule:
        if self.min is None and self.max is None:
            raise ValueError("expected min, max or both")
        return self

    def fields(self) -> dict[str, Any]:
        return {"columns": (self.column,), "minimum": self.min, "maximum": self.max, "tolerance": self.tolerance}


class AcceptedRule(RuleByPart):
    column: Identifier
    values: Annotated[tuple[str, ...], Field(min_length=1)]
    tolerance: Share = 0.0

    def fields(self) -> dict[str, Any]:
        return {"columns": (self.column,), "values": self.values, "tolerance": self.tolerance}


class PatternRule(RuleByPart):
    column: Identifier
    matches: Text
    tolerance: Share = 0.0

    def fields(self) -> dict[str, Any]:
        return {"columns": (self.column,), "matches": self.matches, "tolerance": self.tolerance}


class LengthRule(RuleByPart):
    column: Identifier
    min: Length | None = None
    max: Length | None = None
    tolerance: Share = 0.0

    @model_validator(mode="after")
    def _bounded(self) -> LengthRule:
        if self.min is None and self.max is None:
            raise ValueError("expected min, max or both")
        return self

    def fields(self) -> dict[str, Any]:
        low, high = (None if each is None else str(each) for each in (self.min, self.max))
        return {"columns": (self.column,), "minimum": low, "maximum": high, "tolerance": self.tolerance}


class ReferencesRule(RuleByPart):
    column: Columns
    dataset: Label
    to: Columns
    tolerance: Share = 0.0

    @model_validator(mode="after")
    def _paired(self) -> ReferencesRule:
        if len(self.column) != len(self.to):
            raise ValueError("expected as many columns in `to` as in `column`")
        return self

    def fields(self) -> dict[str, Any]:
        return {"columns": self.column, "dataset": self.dataset, "to": self.to, "tolerance": self.tolerance}


class RowsRule(RuleByPart):
    per: Annotated[Per, later(Per.SCOPE)] = Per.SCOPE
    input: Identifier
    tolerance: Share = 0.0

    def fields(self) -> dict[str, Any]:
        return {"input": self.input, "tolerance": self.tolerance}


class FreshRule(RuleByPart):
    column: Identifier
    within: Duration

    def fields(self) -> dict[str, Any]:
        return {"columns": (self.column,), "within_seconds": int(self.within / timedelta(seconds=1))}


class MonotonicRule(RuleByPart):
    column: Identifier
    by: Annotated[tuple[Identifier, ...], BeforeValidator(_list)] = ()
    order: Columns
    tolerance: Share = 0.0

    def fields(self) -> dict[str, Any]:
        return {"columns": (self.column,), "by": self.by, "order": self.order, "tolerance": self.tolerance}


class MoveRule(RuleByPart):
    column: Identifier
    tolerance: Share

    def fields(self) -> dict[str, Any]:
        return {"columns": (self.column,), "tolerance": self.tolerance}


class DriftRule(RuleByPart):
    column: Identifier
    at_most: Share

    def fields(self) -> dict[str, Any]:
        return {"columns": (self.column,), "tolerance": self.at_most}


class CustomRule(Document):
    """Custom rules choose their rows themselves."""

    name: Annotated[str, Field(min_length=1, max_length=80)] | None = None
    severity: Literal["block", "warn"] = "block"

    def made(self, kind: RuleKind, **own: str) -> Rule:
        label = kind.value.replace("_", " ")
        name = self.name or (label if "query" in own else f"{label} {own['reference']}")
        return Rule(kind=kind, name=name, severity=Consequence(self.severity), **own)


class SqlRule(CustomRule):
    query: Text

    def rule(self, kind: RuleKind) -> Rule:
        return self.made(kind, query=self.query)


class CodeRule(CustomRule):
    code: Annotated[str, AfterValidator(_module)]

    def rule(self, kind: RuleKind) -> Rule:
        return self.made(kind, reference=self.code)


class SuiteRule(CustomRule):
    code: Annotated[str, AfterValidator(_suite)]

    def rule(self, kind: RuleKind) -> Rule:
        return self.made(kind, reference=self.code)


def _short(key: str) -> BeforeValidator:
    """A rule may be written as its most important value alone."""
    return BeforeValidator(lambda value: value if isinstance(value, dict) else {key: value})


class RuleEntry(Document):
    """Exactly one kind of rule."""

    not_null: Annotated[NotNullRule, _short("columns")] | None = None
    unique: Annotated[UniqueRule, _short("columns")] | None = None
    range: RangeRule | None = None
    accepted: AcceptedRule | None = None
    pattern: PatternRule | None = None
    length: LengthRule | None = None
    references: ReferencesRule | None = None
    rows: Annotated[RowsRule, _short("input")] | None = None
    fresh: FreshRule | None = None
    monotonic: MonotonicRule | None = None
    sum: MoveRule | None = None
    mean: MoveRule | None = None
    drift: DriftRule | None = None
    sql: Annotated[SqlRule, _short("query")] | None = None
    python: Annotated[CodeRule, _short("code")] | None = None
    pandera: Annotated[CodeRule, _short("code")] | None = None
    great_expectations: Annotated[SuiteRule, _short("code")] | None = None

    @model_validator(mode="before")
    @classmethod
    def _one(cls, value: object) -> object:
        known = [kind.value for kind in RuleKind]
        if isinstance(value, str):
            raise ValueError(f"expected a rule such as `not_null: [id]`, got {value!r}{suggestion(value, known)}")  # noqa: TRY004 - pydantic reports ValueErrors
        if isinstance(value, dict) and len(value) != 1:
            raise ValueError("expected one rule in each item of the list, such as `- not_null: [id]`")
        if isinstance(value, dict) and None in value.values():
            raise ValueError("expected what the rule is about, got nothing")
        return value

    def rule(self) -> Rule:
        kind = next(each for each in RuleKind if getattr(self, each.value) is not None)
        found: Rule = getattr(self, kind.value).rule(kind)
        return found


class MetricConfig(Document):
    """A SQL aggregate over the scope's rows, or over groups of them, and the move at which a person must look."""

    sql: Text
    by: Annotated[tuple[Text, ...], BeforeValidator(_list), later(())] = ()
    falls: Share | None = None
    rises: Move | None = None
    per: Per = Per.SCOPE

    @model_validator(mode="after")
    def _limited(self) -> MetricConfig:
        if self.falls is None and self.rises is None:
            raise ValueError("expected falls, rises or both")
        return self


class GatesConfig(Document):
    """How much may change before a person must look."""

    changed_rows: Share | None = None
    changed_partitions: Share | None = None
    metrics: dict[Label, MetricConfig] = Field(default_factory=dict)

    def gates(self) -> Gates:
        return Gates(
            changed_rows=self.changed_rows,
            changed_partitions=self.changed_partitions,
            metrics=tuple(Metric(name=name, **each.model_dump()) for name, each in self.metrics.items()),
        )


NO_GATES_CONFIG = GatesConfig()


def rules_of(*declared: Iterable[RuleEntry]) -> tuple[Rule, ...]:
    """All rules in their order; a name that is there already gets a number."""
    found: dict[str, Rule] = {}
    for rule in (entry.rule() for entries in declared for entry in entries):
        names = (rule.name if number == 1 else f"{rule.name} ({number})" for number in range(1, 1_000))
        name = next(each for each in names if each not in found)
        found[name] = rule.model_copy(update={"name": name})
    return tuple(found.values())


def _named(kind: RuleKind, own: dict[str, Any]) -> str:
    subject = ", ".join(own.get("columns") or (own.get("input", ""),))
    return f"{kind.value.replace('_', ' ')} {subject}"[:80].strip()
