"""What a terminal shows of a verdict with rules: the gravest first, with numbers and rows, then every layer."""

from __future__ import annotations

from typing import Any

from backcast.cli.render.verdict import render_verdict
from backcast.model.layer import Consequence, Layer
from backcast.model.rule import PartResult, RuleResult
from backcast.model.verdict import Check, Verdict
from backcast.testing.samples import sample_verdict
from tests.unit.cli_screens import shown


def result(name: str, consequence: Consequence, **changes: Any) -> RuleResult:
    values: dict[str, Any] = {"kind": "range", "layer": Layer.QUALITY, "passed": False, "detail": f"{name} broken"}
    return RuleResult(name=name, consequence=consequence, numbers={}, **{**values, **changes})


def verdict(*results: RuleResult) -> Verdict:
    names = ("name", "passed", "detail", "layer", "consequence")
    checks = tuple(Check(**{name: getattr(each, name) for name in names}) for each in results)
    plain = sample_verdict("r", accepted=True)
    return plain.model_copy(update={"checks": (*plain.checks, *checks), "results": results, "accepted": False})


def test_what_failed_comes_first_by_gravity_with_rows_and_partitions() -> None:
    rows = ({"id": "1", "email": "***"}, {"id": "2", "email": None})
    parts = tuple(PartResult(chunk=f"2026-01-0{day}", numbers={"failing": day}) for day in range(1, 7))
    groups = tuple(PartResult(chunk="", group=f"{name}, open", numbers={"base": 9, "stage": 1}) for name in "ABCDEF")
    page = shown(
        render_verdict(
            verdict(
                result("told", Consequence.WARN),
                result("looked at", Consequence.REVIEW, layer=Layer.REASONABLENESS),
                result("amounts", Consequence.BLOCK, failing_rows=9, samples=rows),
                result("by day", Consequence.BLOCK, failing_partitions=6, partitions=parts),
                result("by group", Consequence.WARN, failing_partitions=6, partitions=groups),
                result("fine", Consequence.BLOCK, passed=True, detail="9 rows"),
            )
        ),
        width=100,
    )
    lines = [line.strip() for line in page.splitlines()]
    assert lines[0] == "r  rejected"
    assert "2 checks failed, 1 needs a look, 2 warnings" in lines
    order = [lines.index(line) for line in lines if line.startswith(("✗", "?", "!"))]
    assert [lines[at].split()[0] for at in order] == ["✗", "✗", "?", "!", "!"]
    assert "row  id=1  email=***" in lines
    assert "row  id=2  email=null" in lines
    assert "and 7 more rows" in lines
    assert "2026-01-05: failing 5" in lines
    assert {"and 1 more partition", "and 1 more group", "A, open: base 9, stage 1"} <= set(lines)
    assert lines.index("Technical") < lines.index("Quality") < lines.index("✓  fine  9 rows")


def test_a_run_under_review_says_how_to_accept_it() -> None:
    page = shown(render_verdict(verdict(result("changed rows", Consequence.REVIEW))))
    assert page.startswith("r  review")
    assert 'backcast approve r --comment "..."' in page
    assert "backcast publish r" not in page
