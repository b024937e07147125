"""From measured numbers to results and verdicts, without a row."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import pytest

from backcast.model.digest import Digest
from backcast.model.layer import Consequence, Layer
from backcast.model.rule import Gates, Metric, Per, Rule, RuleKind, RuleResult
from backcast.model.scope import EVERYTHING, ValueClause
from backcast.model.verdict import Check, Outcome, outcome_of
from backcast.ports.rules import Bucket, Group, Part, Scan
from backcast.testing.samples import sample_manifest
from backcast.validate.drift import distance
from backcast.validate.gates import changed_parts, judge_gates
from backcast.validate.measure import reaches_out
from backcast.validate.rules import Facts, added, judge, percent


def scan(*parts: tuple[int, str], **values: float | None) -> Scan:
    """Parts with so many rows and this digest, and metrics of the scope."""
    whole = Part(metrics=values)
    return Scan({str(at): Part(Digest(rows=rows, high=high)) for at, (rows, high) in enumerate(parts)}, whole)


def tripped(gates: Gates, stage: Scan, base: Scan, changed: int | None = None) -> dict[str, bool]:
    return {each.name: not each.passed for each in judge_gates(gates, stage, base, changed)}


@pytest.mark.parametrize(("changed", "trips"), [(0, False), (20, False), (21, True), (100, True)])
def test_more_than_the_share_of_changed_rows_needs_a_look(changed: int, trips: bool) -> None:
    gates = Gates(changed_rows=0.2)
    stage, base = scan((100, "1")), scan((90, "2"))
    assert tripped(gates, stage, base, changed) == {"changed rows": trips}
    (result,) = judge_gates(gates, stage, base, changed)
    assert (result.consequence, result.layer) == (Consequence.REVIEW, Layer.REASONABLENESS)


def test_partitions_are_told_apart_by_digest() -> None:
    stage, base = scan((1, "1"), (1, "2"), (1, "3"), (1, "4")), scan((1, "1"), (1, "2"), (1, "9"), (1, "9"))
    assert changed_parts(stage, base) == ["2", "3"]
    assert tripped(Gates(changed_partitions=0.5), stage, base) == {"changed partitions": False}
    assert tripped(Gates(changed_partitions=0.49), stage, base) == {"changed partitions": True}


def test_a_base_without_rows_trips_nothing() -> None:
    gates = Gates(changed_rows=0.0, changed_partitions=0.0, metrics=(Metric(name="m", sql="sum(x)", rises=0.0),))
    assert set(tripped(gates, scan((5, "1"), m=7.0), scan((0, "0"), m=None), 5).values()) == {False}


@pytest.mark.parametrize(
    ("before", "after", "trips"),
    [
        (100.0, 21.0, False),
        (100.0, 20.0, True),
        (100.0, None, True),
        (100.0, 149.0, False),
        (100.0, 150.0, True),
        (-100.0, -180.0, True),
        (-100.0, -51.0, False),
        (0.0, 0.0, False),
        (0.0, 1.0, True),
        (0.0, -1.0, True),
        (math.nan, 1.0, True),
        (100.0, math.nan, True),
        (100.0, math.inf, True),
    ],
)
def test_a_metric_that_falls_or_rises_by_its_share_needs_a_look(
    before: float, after: float | None, trips: bool
) -> None:
    gates = Gates(metrics=(Metric(name="m", sql="count(*)", falls=0.8, rises=0.5),))
    assert tripped(gates, scan((1, "1"), m=after), scan((1, "1"), m=before)) == {"metric m": trips}


def test_a_metric_of_each_partition_names_those_that_moved() -> None:
    def parts(*values: float) -> Scan:
        return Scan({f"d{at}": Part(Digest(rows=1), metrics={"m": value}) for at, value in enumerate(values)})

    gates = Gates(metrics=(Metric(name="m", sql="count(*)", falls=0.5, per=Per.PARTITION),))
    (result,) = judge_gates(gates, parts(10, 4, 10), parts(10, 10, 10), None)
    assert (result.passed, result.failing_partitions, [each.chunk for each in result.partitions]) == (False, 1, ["d1"])


def grouped(per: Per = Per.SCOPE, **values: float) -> Scan:
    """A metric `m` of groups of rows: of the scope, or of a part `d0`."""
    groups = {"m": {ord(name[0]): Group(name, value) for name, value in values.items()}}
    if per is Per.SCOPE:
        return Scan({"d0": Part(Digest(rows=1))}, Part(groups=groups))
    return Scan({"d0": Part(Digest(rows=1), groups=groups)})


@pytest.mark.parametrize("per", Per)
def test_groups_that_moved_are_told_and_the_worst_is_named(per: Per) -> None:
    """The sum of all has not moved. A group that is gone, or that is new, was or is nothing."""
    gates = Gates(metrics=(Metric(name="m", sql="count(*)", by=("jurisdiction",), falls=0.5, rises=0.5, per=per),))
    base = grouped(per, DE=100, FR=100, GB=100, IT=10)
    (result,) = judge_gates(gates, grouped(per, DE=160, FR=130, GB=10, ES=10), base, None, ("amount",))
    prefix = "" if per is Per.SCOPE else "d0, "
    assert (result.passed, result.failing_partitions) == (False, 4)
    assert [each.group for each in result.partitions] == ["ES", "IT", "GB", "DE"]
    assert result.detail == f"in 4 of 5 groups, worst {prefix}ES: 0 became 10, a rise of 50% or more needs a look"
    assert result.partitions[2].numbers == {"base": 100, "stage": 10}
    (fine,) = judge_gates(gates, grouped(per, DE=110, FR=90, GB=100, IT=10), base, None)
    assert (fine.passed, fine.detail) == (True, "in each of 4 groups")
    # What a row has in common with others is a value of its column.
    (masked,) = judge_gates(gates, grouped(per, DE=160), base, None, ("jurisdiction",))
    assert {each.group for each in masked.partitions} == {"***"}
    # The first fill has nothing to be compared with.
    assert tripped(gates, grouped(per, DE=160), grouped(per)) == {"metric m": False}


def test_more_groups_than_anybody_could_look_at_need_a_look() -> None:
    gates = Gates(metrics=(Metric(name="m", sql="count(*)", by=("id",), falls=0.5),))
    many = Scan({"d0": Part(Digest(rows=1))}, crowded=frozenset({"m"}))
    (result,) = judge_gates(gates, grouped(DE=1), many, None)
    assert (result.passed, result.detail) == (False, "more than 10,000 groups of id, which nobody could look at")


def check(consequence: Consequence) -> Check:
    return Check(name="c", passed=False, detail="", consequence=consequence)


def test_nobody_is_asked_to_accept_what_is_blocked() -> None:
    block, review, warn = (check(each) for each in (Consequence.BLOCK, Consequence.REVIEW, Consequence.WARN))
    assert outcome_of((review, block, warn)) is Outcome.REJECTED
    assert outcome_of((review, warn)) is Outcome.REVIEW
    assert outcome_of((warn,)) is Outcome.ACCEPTED


def test_numbers_of_partitions_add_up_to_those_of_the_scope() -> None:
    parts: list[dict[str, Any]] = [{"rows": 2, "sum": 1.5, "newest": 7}, {"rows": 3, "sum": None, "newest": 5}]
    assert added(parts) == {"rows": 5, "sum": 1.5, "newest": 7}
    assert added([{"sum": None}, {"sum": None}]) == {"sum": None}


@pytest.mark.parametrize(
    ("key", "where", "reaches"),
    [
        (("id", "day"), (), False),
        (("id",), (), True),
        (("id", "day"), (ValueClause(column="tenant", values=("T-41",)),), True),
        (("tenant", "day"), (ValueClause(column="tenant", values=("T-41",)),), False),
    ],
)
def test_rows_outside_are_looked_at_unless_the_key_itself_says_where_a_row_belongs(
    key: tuple[str, ...], where: tuple[ValueClause, ...], reaches: bool
) -> None:
    manifest = sample_manifest()
    predicate = manifest.scope.predicate.and_values(where)
    scoped = manifest.model_copy(update={"scope": manifest.scope.model_copy(update={"predicate": predicate})})
    rule = Rule(kind=RuleKind.UNIQUE, name="r", columns=key)
    assert reaches_out(rule, scoped) is reaches
    everything = manifest.scope.model_copy(update={"predicate": EVERYTHING})
    assert reaches_out(rule, manifest.model_copy(update={"scope": everything}))


def moved(before: Any, after: Any, **fields: Any) -> RuleResult:
    rule = Rule(kind=RuleKind.SUM, name="r", columns=("x",), **fields)
    return judge(rule, Facts({"": {"sum": after, "values": 2}}, {"": {"sum": before, "values": 2}}))


def test_a_sum_is_compared_to_its_last_digit() -> None:
    """Numbers that are one and the same in binary are two."""
    assert moved(2**53, 2**53).passed
    assert not moved(2**53, 2**53 + 1).passed
    cents = Fraction(2**53, 100)
    assert not moved(cents, cents + Fraction(1, 100)).passed
    assert moved(Fraction(100), Fraction(129), tolerance=0.29).passed


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_what_cannot_be_compared_has_not_passed(wrong: float) -> None:
    """One NaN among the rows of the base must not switch a rule off for good."""
    for before, after, side in ((wrong, 1.0, "base"), (1.0, wrong, "stage"), (wrong, wrong, "base")):
        result = moved(before, after)
        assert (result.passed, result.detail) == (
            False,
            f"sum of x is no finite number on the {side}: nothing can be compared with it",
        )
        assert None in result.numbers.values()
    assert moved(None, wrong).detail == "sum of x is unknown, the base has none"


def test_a_share_of_rows_is_exactly_what_was_written() -> None:
    rule = Rule(kind=RuleKind.RANGE, name="r", columns=("x",), minimum="0", tolerance=0.29)
    assert judge(rule, Facts({"": {"rows": 100, "failing": 29}})).passed
    assert not judge(rule, Facts({"": {"rows": 100, "failing": 30}})).passed


def test_a_rule_has_the_layer_of_what_it_compares_with() -> None:
    rule = Rule(kind=RuleKind.ROWS, name="r", input="events", tolerance=0.01)
    result = judge(rule, Facts({"": {"rows": 99, "source": 100}}))
    assert (result.passed, result.layer) == (True, Layer.RECONCILIATION)
    assert not judge(rule, Facts({"": {"rows": 98, "source": 100}})).passed
    assert not judge(rule, Facts({"": {"rows": 102, "source": 100}})).passed


def test_a_lost_day_is_found_behind_one_that_is_doubled() -> None:
    rule = Rule(kind=RuleKind.ROWS, name="r", input="events", per=Per.PARTITION)
    result = judge(rule, Facts({"d1": {"rows": 0, "source": 5}, "d2": {"rows": 10, "source": 5}}))
    assert (result.passed, [each.chunk for each in result.partitions]) == (False, ["d1", "d2"])
    assert result.detail == "not in 2 of 2 partitions, first d1: 0 rows, input events has 5, 0% may differ"
    assert result.numbers == {"rows": 10, "source": 10}


def buckets(**rows: int) -> dict[int | None, Bucket]:
    return {ord(name): Bucket(number, name) for name, number in rows.items()}


def test_the_distance_is_the_share_of_rows_that_would_have_to_change() -> None:
    found = distance(buckets(a=50, b=50), buckets(a=10, b=10, c=20), ordered=False)
    assert found is not None
    assert (found.distance, found.label, found.before, found.after) == (0.5, "c", 0.0, 0.5)
    assert distance({}, buckets(a=1), ordered=False) is None


def test_a_masked_column_has_no_value_in_the_words_about_its_drift() -> None:
    rule = Rule(kind=RuleKind.DRIFT, name="r", columns=("name",), tolerance=0.1)
    facts = Facts({}, distances={"": distance(buckets(a=1), buckets(b=1), ordered=False)})
    assert "most of all a" in judge(rule, facts).detail or "most of all b" in judge(rule, facts).detail
    assert "most of all ***" in judge(rule, facts, ("Name",)).detail


FRESH = {"newest": 1_767_225_600_000_000}


@pytest.mark.parametrize("per", Per)
@pytest.mark.parametrize(
    ("kind", "stage", "base"),
    [
        (RuleKind.FRESH, FRESH, {}),
        (RuleKind.SUM, {"sum": 4711, "values": 1}, {"sum": 815, "values": 1}),
        (RuleKind.MEAN, {"sum": 4711, "values": 1}, {"sum": 815, "values": 1}),
    ],
)
def test_a_masked_column_has_no_value_in_the_words_and_numbers_about_it(
    kind: RuleKind, stage: dict[str, Any], base: dict[str, Any], per: Per
) -> None:
    """The newest value, and the sum over one row, are that row's own."""
    rule = Rule(kind=kind, name="r", columns=("x",), per=per, within_seconds=60)
    unit = "" if per is Per.SCOPE else "2026-01-02"
    facts = Facts({unit: stage}, {unit: base}, ends={unit: datetime(2026, 1, 2, tzinfo=UTC)})
    told, masked = judge(rule, facts), judge(rule, facts, ("X",))
    assert (told.passed, masked.passed) == (False, False)
    assert any(value in told.model_dump_json() for value in ("4711", "4,711", "1767225600", "2026-01-01"))
    text = masked.model_dump_json()
    assert not any(value in text for value in ("4711", "4,711", "815", "1767225600", "2026-01-01", "1 day", "%)"))
    assert "***" in masked.detail


@pytest.mark.parametrize("sql", ["max(salary)", "sum(`Salary`)"])
@pytest.mark.parametrize("per", Per)
def test_a_metric_of_a_masked_column_tells_only_whether_it_needs_a_look(sql: str, per: Per) -> None:
    gates = Gates(metrics=(Metric(name="m", sql=sql, falls=0.5, per=per),))
    stage, base = (
        Scan({"d0": Part(Digest(rows=1), metrics={"m": value})}, Part(metrics={"m": value})) for value in (47.0, 4711.0)
    )
    (told,) = judge_gates(gates, stage, base, None, ("salaries",))
    (masked,) = judge_gates(gates, stage, base, None, ("salary",))
    assert "4711" in told.model_dump_json()
    assert "47" not in masked.model_dump_json()
    assert (masked.passed, "needs a look" in masked.detail) == (False, True)


@pytest.mark.parametrize(
    ("share", "text"), [(0.2, "20%"), (0.001, "0.1%"), (0.0001, "<0.1%"), (0.0, "0%"), (2.0, "200%")]
)
def test_shares_are_short_and_never_round_to_nothing(share: float, text: str) -> None:
    assert percent(share) == text


@pytest.mark.parametrize(
    ("kind", "query", "sees"),
    [
        (RuleKind.SQL, "SELECT * FROM stage WHERE base_price < 0", False),
        (RuleKind.SQL, "SELECT id FROM stage EXCEPT SELECT id FROM Base", True),
        (RuleKind.PYTHON, None, True),
        (RuleKind.PANDERA, None, False),
        (RuleKind.DRIFT, None, True),
        (RuleKind.UNIQUE, None, False),
    ],
)
def test_a_rule_that_may_look_at_the_base_is_known_as_one(kind: RuleKind, query: str | None, sees: bool) -> None:
    assert Rule(kind=kind, name="r", query=query).sees_base is sees
