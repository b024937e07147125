"""Metrics of gates: how far a number of the scope, of its chunks or of groups of rows has moved. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from backcast.model.diff import MASK
from backcast.model.layer import Consequence, Layer
from backcast.model.rule import Metric, Number, PartResult, Per, RuleResult
from backcast.model.words import many
from backcast.ports.rules import MOST_GROUPS, Group, Part, Scan
from backcast.validate.rules import percent, plain

_MOST_PARTS = 20
_MISSING = Group("", 0.0)


@dataclass(frozen=True, slots=True)
class _Unit:
    """One number on both sides."""

    chunk: str
    group: str
    was: float | None
    value: float | None

    @property
    def name(self) -> str:
        return ", ".join(each for each in (self.chunk, self.group) if each)

    @property
    def move(self) -> float:
        """How far, for an order of what is worst; what cannot be told, and something out of nothing, is the worst."""
        was, now = self.was, self.value or 0.0
        known = was is not None and math.isfinite(was) and math.isfinite(now)
        return abs(now - was) / abs(was) if was and known else math.inf


def judge_metric(metric: Metric, stage: Scan, base: Scan, masked: tuple[str, ...]) -> RuleResult:
    """The result of its gate."""
    hidden = _names((metric.sql,), masked)
    crowded = metric.name in stage.crowded | base.crowded
    if crowded:
        found = f"more than {MOST_GROUPS:,} groups of {', '.join(metric.by)}, which nobody could look at"
        return gate(f"metric {metric.name}", passed=False, detail=found, numbers={})
    units = list(_units(metric, stage, base, unnamed=_names(metric.by, masked)))
    judged = [(unit, *_moved(metric, unit.was, unit.value, hidden=hidden)) for unit in units]
    if metric.per is Per.SCOPE and not metric.by:
        ((unit, passed, detail),) = judged
        return gate(f"metric {metric.name}", passed, detail, _told(unit, hidden=hidden))
    wrong = [(unit, detail) for unit, passed, detail in judged if not passed]
    noun = "group" if metric.by else "partition"
    total = many(len(units), noun)
    if not wrong:
        return gate(f"metric {metric.name}", passed=True, detail=f"in each of {total}", numbers={})
    word = "first"
    if metric.by:
        word = "worst"
        wrong.sort(key=lambda each: (-each[0].move, each[0].name))
    first, detail = wrong[0]
    result = gate(
        f"metric {metric.name}",
        passed=False,
        detail=f"in {len(wrong):,} of {total}, {word} {first.name}: {detail}",
        numbers={},
    )
    parts = tuple(
        PartResult(chunk=unit.chunk, group=unit.group, numbers=_told(unit, hidden=hidden))
        for unit, _ in wrong[:_MOST_PARTS]
    )
    return result.model_copy(update={"failing_partitions": len(wrong), "partitions": parts})


def gate(name: str, passed: bool, detail: str, numbers: dict[str, Number]) -> RuleResult:
    return RuleResult(
        name=name,
        kind="gate",
        layer=Layer.REASONABLENESS,
        consequence=Consequence.REVIEW,
        passed=passed,
        detail=detail,
        numbers=numbers,
    )


def _names(texts: tuple[str, ...], masked: tuple[str, ...]) -> bool:
    """Whether SQL is about a masked column: `max(salary)` is somebody's salary."""
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) for name in masked for text in texts)


def _units(metric: Metric, stage: Scan, base: Scan, *, unnamed: bool) -> Iterator[_Unit]:
    pairs = [("", stage.whole, base.whole)]
    if metric.per is Per.PARTITION:
        pairs = [(name, part, base.parts[name]) for name, part in stage.parts.items()]
    for chunk, after, before in pairs:
        if not metric.by:
            yield _Unit(chunk, "", before.metrics.get(metric.name), after.metrics.get(metric.name))
        else:
            yield from _groups(metric, chunk, before, after, unnamed=unnamed)


def _groups(metric: Metric, chunk: str, before: Part, after: Part, *, unnamed: bool) -> Iterator[_Unit]:
    """A group that only one side has is nothing on the other; where the base has no row, it has no groups either."""
    old, new = (side.groups.get(metric.name, {}) for side in (before, after))
    none = _MISSING if old else Group("", None)
    labels = {key: each.label for key, each in {**old, **new}.items()}
    for key in sorted(labels, key=lambda each: (labels[each], each)):
        was, value = old.get(key, none).value, new.get(key, _MISSING).value
        yield _Unit(chunk, MASK if unnamed else labels[key], was, value)


def _told(unit: _Unit, *, hidden: bool) -> dict[str, Number]:
    return {"base": None, "stage": None} if hidden else plain({"base": unit.was, "stage": unit.value})


def _moved(metric: Metric, was: float | None, value: float | None, *, hidden: bool) -> tuple[bool, str]:
    before, after = (MASK if hidden and each is not None else _number(each) for each in (was, value))
    if was is None:
        return True, f"the base has none, now {after}"
    now = value or 0
    if not (math.isfinite(was) and math.isfinite(now)):
        return False, f"{before} became {after}, and how far that is nobody can tell"
    move = (now - was) / abs(was) if was else 0.0
    # From nothing to something is more than any share.
    falls = metric.falls is not None and was != now and (-move >= metric.falls if was else now < 0)
    rises = metric.rises is not None and was != now and (move >= metric.rises if was else now > 0)
    moved = f" ({move:+.1%})" if was and not hidden else ""
    limits = [(falls, "a fall", metric.falls), (rises, "a rise", metric.rises)]
    asked = next((f", {word} of {percent(share or 0)} or more needs a look" for hit, word, share in limits if hit), "")
    return not (falls or rises), f"{before} became {after}{moved}{asked}"


def _number(value: float | None) -> str:
    if value is None:
        return "nothing"
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "infinity"
    return f"{int(value):,}" if float(value).is_integer() else f"{value:,.4g}"
