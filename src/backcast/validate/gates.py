"""Gates: is the change as big as one would expect? Pure, from numbers of base and stage."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from backcast.model.diff import MASK
from backcast.model.layer import Consequence, Layer
from backcast.model.rule import Gates, Metric, Number, PartResult, Per, RuleResult
from backcast.model.words import many
from backcast.ports.rules import Scan
from backcast.validate.rules import percent, plain


def changed_parts(stage: Scan, base: Scan) -> list[str]:
    """Chunks whose rows differ."""
    return [name for name, part in stage.parts.items() if part.digest != base.parts[name].digest]


def judge_gates(
    gates: Gates, stage: Scan, base: Scan, changed: int | None, masked: tuple[str, ...] = ()
) -> list[RuleResult]:
    """One result for each gate. `changed` rows; None when that gate is not asked for."""
    before = sum(part.digest.rows for part in base.parts.values())
    after = sum(part.digest.rows for part in stage.parts.values())
    found = []
    if gates.changed_rows is not None and changed is not None:
        found.append(_share("changed rows", gates.changed_rows, changed, max(before, after), "row", fresh=not before))
    if gates.changed_partitions is not None:
        parts, total = len(changed_parts(stage, base)), len(stage.parts)
        share = _share("changed partitions", gates.changed_partitions, parts, total, "partition", fresh=not before)
        found.append(share)
    return [*found, *(_metric(metric, stage, base, hidden=_names(metric, masked)) for metric in gates.metrics)]


def _share(name: str, most: float, changed: int, total: int, noun: str, *, fresh: bool) -> RuleResult:
    share = changed / total if total else 0.0
    detail = f"{changed:,} of {many(total, noun)} ({percent(share)})"
    if fresh:
        detail = "the base has no row in scope, so there is nothing to compare with"
    passed = fresh or share <= most
    numbers: dict[str, Number] = {"changed": changed, "of": total}
    return _result(name, passed, detail if passed else f"{detail}, {percent(most)} pass without a look", numbers)


def _names(metric: Metric, masked: tuple[str, ...]) -> bool:
    """Whether it is about a masked column: `max(salary)` is somebody's salary."""
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", metric.sql, re.IGNORECASE) for name in masked)


def _metric(metric: Metric, stage: Scan, base: Scan, *, hidden: bool) -> RuleResult:
    def told(was: float | None, value: float | None) -> dict[str, Number]:
        return {"base": None, "stage": None} if hidden else plain({"base": was, "stage": value})

    if metric.per is Per.SCOPE:
        value, was = stage.whole.metrics.get(metric.name), base.whole.metrics.get(metric.name)
        passed, detail = _moved(metric, was, value, hidden=hidden)
        return _result(f"metric {metric.name}", passed, detail, told(was, value))
    wrong: dict[str, tuple[str, Mapping[str, Number]]] = {}
    for name, part in stage.parts.items():
        value, was = part.metrics.get(metric.name), base.parts[name].metrics.get(metric.name)
        passed, detail = _moved(metric, was, value, hidden=hidden)
        if not passed:
            wrong[name] = (detail, told(was, value))
    total = many(len(stage.parts), "partition")
    if not wrong:
        return _result(f"metric {metric.name}", passed=True, detail=f"in each of {total}", numbers={})
    first = next(iter(wrong))
    result = _result(
        f"metric {metric.name}",
        passed=False,
        detail=f"in {len(wrong):,} of {total}, first {first}: {wrong[first][0]}",
        numbers={},
    )
    parts = tuple(PartResult(chunk=name, numbers=dict(numbers)) for name, (_, numbers) in list(wrong.items())[:20])
    return result.model_copy(update={"failing_partitions": len(wrong), "partitions": parts})


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


def _result(name: str, passed: bool, detail: str, numbers: dict[str, Number]) -> RuleResult:
    return RuleResult(
        name=name,
        kind="gate",
        layer=Layer.REASONABLENESS,
        consequence=Consequence.REVIEW,
        passed=passed,
        detail=detail,
        numbers=numbers,
    )
