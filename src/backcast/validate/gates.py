"""Gates: is the change as big as one would expect? Pure, from numbers of base and stage."""

from __future__ import annotations

from backcast.model.rule import Gates, Number, RuleResult
from backcast.model.words import many
from backcast.ports.rules import Scan
from backcast.validate.metrics import gate, judge_metric
from backcast.validate.rules import percent


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
    return [*found, *(judge_metric(metric, stage, base, masked) for metric in gates.metrics)]


def _share(name: str, most: float, changed: int, total: int, noun: str, *, fresh: bool) -> RuleResult:
    share = changed / total if total else 0.0
    detail = f"{changed:,} of {many(total, noun)} ({percent(share)})"
    if fresh:
        detail = "the base has no row in scope, so there is nothing to compare with"
    passed = fresh or share <= most
    numbers: dict[str, Number] = {"changed": changed, "of": total}
    return gate(name, passed, detail if passed else f"{detail}, {percent(most)} pass without a look", numbers)
