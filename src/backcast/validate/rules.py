"""From measured numbers to results: pure. Nothing here reads a row, and no number is measured twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from backcast.model.diff import MASK
from backcast.model.masked import hides
from backcast.model.rule import BY_ROW, Number, PartResult, Per, Rule, RuleKind, RuleResult
from backcast.model.words import many
from backcast.ports.rules import Bucket, Measure, Scan
from backcast.validate.drift import Distance, distance

Numbers = Mapping[str, Measure]
Judged = tuple[bool, str, dict[str, Measure]]
_MOST_PARTS = 20
_MOST_EXACT = 2**53
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EVERYTHING = ""
_TELLS = frozenset({RuleKind.FRESH, RuleKind.SUM, RuleKind.MEAN})
"""Their numbers are values of the column."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was measured, and what it is held against."""

    stage: Mapping[str, Numbers]
    """By chunk, or of the whole scope under the empty name."""
    base: Mapping[str, Numbers] | None = None
    distances: Mapping[str, Distance | None] = field(default_factory=dict)
    """Of a drift rule. None: the base has no row there."""
    ends: Mapping[str, datetime] = field(default_factory=dict)
    """When the window of each chunk, and of the scope, is over."""
    against: str = ""
    """Which version of another dataset was read."""
    hidden: bool = False
    """The column is masked: its newest value is one row's own, and so may be a sum or a mean."""


def numbers_of(rule: Rule, scan: Scan) -> dict[str, Numbers]:
    """The rule's numbers as a scan has them: by chunk, or added up for the scope."""
    by_part = {name: part.numbers.get(rule.name, {}) for name, part in scan.parts.items()}
    return dict(by_part) if rule.per is Per.PARTITION else {_EVERYTHING: added(list(by_part.values()))}


def added(parts: list[Numbers]) -> dict[str, Measure]:
    """Counts and sums are added, of moments the newest is taken; what is unknown everywhere stays so."""
    found: dict[str, Measure] = {}
    for part in parts:
        for name, value in part.items():
            before = found.get(name)
            if value is None or before is None:
                found[name] = before if value is None else value
            else:
                found[name] = max(before, value) if name == "newest" else before + value
    return found


def distances_of(rule: Rule, stage: Scan, base: Scan) -> dict[str, Distance | None]:
    """How far each part's values, or those of the scope, have moved."""
    ordered = rule.name in stage.ordered

    def one(after: Mapping[int | None, Bucket], before: Mapping[int | None, Bucket]) -> Distance | None:
        return distance(before, after, ordered=ordered)

    if rule.per is Per.SCOPE:
        return {_EVERYTHING: one(stage.whole.buckets.get(rule.name, {}), base.whole.buckets.get(rule.name, {}))}
    return {
        name: one(part.buckets.get(rule.name, {}), base.parts[name].buckets.get(rule.name, {}))
        for name, part in stage.parts.items()
    }


def judge(rule: Rule, facts: Facts, masked: tuple[str, ...] = ()) -> RuleResult:
    """The rule's result without samples."""
    facts = replace(facts, hidden=rule.kind in _TELLS and hides(masked, rule.column))
    by_unit: dict[str, Judged] = {
        name: _JUDGES[rule.kind](rule, facts, name, numbers) for name, numbers in facts.stage.items()
    }
    if rule.kind is RuleKind.DRIFT:
        by_unit = {name: _drift(rule, found, masked) for name, found in facts.distances.items()}
    wrong = {name: each for name, each in by_unit.items() if not each[0]}
    by_row = rule.kind in BY_ROW or rule.kind in (RuleKind.UNIQUE, RuleKind.REFERENCES)
    failing = sum(int(each[2].get("failing") or 0) for each in by_unit.values()) if by_row else None
    return RuleResult(
        name=rule.name,
        kind=rule.kind,
        layer=rule.kind.layer,
        consequence=rule.severity,
        passed=not wrong,
        detail=_sentence(rule, by_unit, wrong),
        numbers=_told(
            by_unit[_EVERYTHING][2] if _EVERYTHING in by_unit else added([each[2] for each in by_unit.values()]), facts
        ),
        failing_rows=failing,
        failing_partitions=len(wrong) if rule.per is Per.PARTITION else 0,
        partitions=tuple(
            PartResult(chunk=name, numbers=_told(each[2], facts))
            for name, each in list(wrong.items())[:_MOST_PARTS]
            if rule.per is Per.PARTITION
        ),
    )


def _told(numbers: Numbers, facts: Facts) -> dict[str, Number]:
    return dict.fromkeys(numbers) if facts.hidden else plain(numbers)


def _sentence(rule: Rule, units: Mapping[str, Judged], wrong: Mapping[str, Judged]) -> str:
    if rule.per is Per.SCOPE:
        return units[_EVERYTHING][1]
    if not wrong:
        return f"in each of {many(len(units), 'partition')}"
    name, first = next(iter(wrong.items()))
    return f"not in {len(wrong):,} of {many(len(units), 'partition')}, first {name}: {first[1]}"


def _by_row(rule: Rule, facts: Facts, unit: str, numbers: Numbers) -> Judged:
    failing, rows = int(numbers.get("failing") or 0), int(numbers.get("rows") or 0)
    passed = failing <= _tolerance(rule) * rows
    told = {**numbers, "rows": rows, "failing": failing}
    if not failing:
        return True, f"{many(rows, 'row')}{f', {facts.against}' if facts.against else ''}", told
    allowed = f", {percent(rule.tolerance)} may" if rule.tolerance else ""
    return passed, f"{failing:,} of {many(rows, 'row')} {_broken(rule, numbers, facts)}{allowed}", told


def _broken(rule: Rule, numbers: Numbers, facts: Facts) -> str:
    names = ", ".join(rule.columns)
    match rule.kind:
        case RuleKind.NOT_NULL:
            nulls = [name for name in rule.columns if numbers.get(f"nulls of {name}", 1)]
            return f"without {', '.join(nulls)}"
        case RuleKind.RANGE:
            low, high = rule.minimum, rule.maximum
            bounds = f"below {low}" if high is None else f"above {high}" if low is None else f"outside {low} .. {high}"
            return f"with {names} {bounds}"
        case RuleKind.ACCEPTED:
            values = ", ".join(rule.values[:5]) + (" ..." if len(rule.values) > 5 else "")
            return f"with a {names} other than {values}"
        case RuleKind.PATTERN:
            return f"with {names} not like {rule.matches}"
        case RuleKind.LENGTH:
            most = "" if rule.maximum is None else f" .. {rule.maximum}"
            return f"with {names} not of length {rule.minimum or 0}{most or ' or more'}"
        case RuleKind.REFERENCES:
            return f"with {names} unknown to {rule.dataset} ({facts.against})"
        case _:
            return f"where {names} falls"


def _unique(rule: Rule, facts: Facts, unit: str, numbers: Numbers) -> Judged:
    failing, outside = int(numbers.get("failing") or 0), int(numbers.get("outside") or 0)
    told = {**numbers, "failing": failing}
    if not failing:
        return True, many(int(numbers.get("rows") or 0), "row"), told
    keys = f"{many(int(numbers.get('keys') or 0), 'key')} of {', '.join(rule.columns)} more than once"
    across = f", {outside:,} of the rows again outside the scope" if outside else ""
    return False, f"{keys} ({many(failing, 'row')}{across})", told


def _rows(rule: Rule, facts: Facts, unit: str, numbers: Numbers) -> Judged:
    rows, source = int(numbers.get("rows") or 0), int(numbers.get("source") or 0)
    passed = abs(rows - source) <= _tolerance(rule) * source
    told = f"{many(rows, 'row')}, input {rule.input} has {source:,}"
    return (
        passed,
        told + ("" if passed else f", {percent(rule.tolerance)} may differ"),
        {"rows": rows, "source": source},
    )


def _fresh(rule: Rule, facts: Facts, unit: str, numbers: Numbers) -> Judged:
    newest, end = numbers.get("newest"), facts.ends[unit]
    if newest is None:
        return False, f"no {rule.column} at all", {"newest": None}
    moment = _EPOCH + timedelta(microseconds=int(newest))
    behind = end - moment
    passed = behind.total_seconds() <= (rule.within_seconds or 0)
    told = f"newest {rule.column} is {moment:%Y-%m-%d %H:%M} UTC, "
    told += "after the scope's end" if behind < timedelta() else f"{_span(behind)} before the scope's end"
    if facts.hidden:
        told = f"newest {rule.column} is {MASK}"
    allowed = timedelta(seconds=rule.within_seconds or 0)
    return passed, told if passed else f"{told}, {_span(allowed)} is allowed", {"newest": newest / 1_000_000}


def _compared(rule: Rule, facts: Facts, unit: str, numbers: Numbers) -> Judged:
    """Sum or mean against the base's. Where the base has no value there is nothing to compare with."""
    after, before = _value(rule, numbers), _value(rule, (facts.base or {}).get(unit, {}))
    told: dict[str, Measure] = {"stage": after, "base": before}
    name = f"{rule.kind} of {rule.column}"
    was_text, is_text = (MASK if facts.hidden and value is not None else _short(value) for value in (before, after))
    if before is None:
        return True, f"{name} is {is_text}, the base has none", told
    if after is None:
        return False, f"{name} was {was_text}, the stage has none", told
    for side, value in (("base", before), ("stage", after)):
        if not math.isfinite(value):
            return False, f"{name} is no finite number on the {side}: nothing can be compared with it", told
    was, moved = abs(Fraction(before)), Fraction(after) - Fraction(before)
    passed = abs(moved) <= _tolerance(rule) * was
    share = f" ({float(moved / was):+.1%})" if was and not facts.hidden else ""
    text = f"{name} was {was_text}, is {is_text}{share}"
    return passed, text + ("" if passed else f", {percent(rule.tolerance)} may move"), told


def _value(rule: Rule, numbers: Numbers) -> Measure:
    total, values = numbers.get("sum"), numbers.get("values")
    if total is None or not values:
        return None
    if rule.kind is RuleKind.SUM:
        return total
    return total / values if isinstance(total, float) else Fraction(total) / int(values)


def _tolerance(rule: Rule) -> Fraction:
    """As it was written: 29 of 100 rows are 29%, which in binary they are not."""
    return Fraction(str(rule.tolerance))


def _drift(rule: Rule, found: Distance | None, masked: tuple[str, ...]) -> Judged:
    if found is None:
        return True, "the base has no row", {"distance": None}
    passed = found.distance <= rule.tolerance
    text = f"{percent(found.distance)} of the values of {rule.column} moved"
    if found.distance:
        label = MASK if hides(masked, rule.column) else found.label
        text += f", most of all {label}: {percent(found.before)} to {percent(found.after)}"
    numbers: dict[str, Measure] = {"distance": round(found.distance, 6)}
    return passed, text + ("" if passed else f"; {percent(rule.tolerance)} may"), numbers


def _unmeasured(rule: Rule, facts: Facts, unit: str, numbers: Numbers) -> Judged:
    return True, "", dict(numbers)


_JUDGES: dict[RuleKind, Callable[[Rule, Facts, str, Numbers], Judged]] = {
    **dict.fromkeys(RuleKind, _unmeasured),
    **dict.fromkeys(BY_ROW, _by_row),
    RuleKind.REFERENCES: _by_row,
    RuleKind.UNIQUE: _unique,
    RuleKind.ROWS: _rows,
    RuleKind.FRESH: _fresh,
    RuleKind.SUM: _compared,
    RuleKind.MEAN: _compared,
}


def percent(share: float) -> str:
    """`20%`, `0.1%`; what is more than nothing is not shown as nothing."""
    text = f"{share:.1%}".replace(".0%", "%")
    return "<0.1%" if text == "0%" and share > 0 else text


def _short(value: Measure) -> str:
    if value is None or not math.isfinite(value):
        return "unknown"
    if value == int(value):
        return f"{int(value):,}"
    number = float(value)
    return f"{number:,.4g}" if abs(number) < 1 else f"{number:,.2f}"


def plain(numbers: Numbers) -> dict[str, Number]:
    """As canonical JSON can hold them: what is no number is None."""
    return {name: _plain(value) for name, value in numbers.items()}


def _plain(value: Measure) -> Number:
    if value is None or not math.isfinite(value):
        return None
    return int(value) if value == int(value) and -_MOST_EXACT < value < _MOST_EXACT else float(value)


def _span(length: timedelta) -> str:
    seconds = length.total_seconds()
    for unit, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= unit:
            amount = round(seconds / unit, 1)
            return f"{amount:g} {name}{'' if amount == 1 else 's'}"
    return many(round(seconds), "second")
