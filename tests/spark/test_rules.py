"""Each rule measured and judged on small frames, from both sides; and how many jobs that takes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from backcast.errors import ChunkFailed
from backcast.model.rule import OWN_JOB, Metric, Per, Rule, RuleKind, RuleResult
from backcast.model.scope import EVERYTHING, Predicate, ValueClause
from backcast.spark.rules import SparkRules
from backcast.validate.rules import Facts, distances_of, judge, numbers_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PARTS = {day: Predicate(clauses=(ValueClause(column="day", values=(day,)),)) for day in ("mon", "tue")}
COLUMNS = "t(day, id, amount, status, at, seq)"
GOOD = f"""VALUES
  ('mon', 1, 10.00BD, 'open', TIMESTAMP'2026-01-05 10:00:00Z', 1),
  ('mon', 2, 20.00BD, 'closed', TIMESTAMP'2026-01-05 23:00:00Z', 2),
  ('tue', 3, 30.00BD, 'open', TIMESTAMP'2026-01-06 22:00:00Z', 3),
  ('tue', 4, null, null, null, null) AS {COLUMNS}"""
NOTHING = f"VALUES ('mon', 1, 1.00BD, 'x', TIMESTAMP'2026-01-05 10:00:00Z', 1) AS {COLUMNS} WHERE false"
ENDS = {
    "": datetime(2026, 1, 7, tzinfo=UTC),
    "mon": datetime(2026, 1, 6, tzinfo=UTC),
    "tue": datetime(2026, 1, 7, tzinfo=UTC),
}


def frame(spark: SparkSession, values: str = GOOD) -> DataFrame:
    return spark.sql(f"SELECT * FROM {values}")


def rule(kind: str, *columns: str, **fields: Any) -> Rule:
    return Rule(kind=RuleKind(kind), name=fields.pop("name", kind), columns=columns, **fields)


def judged(asked: Rule, rows: DataFrame, base: DataFrame | None = None, other: DataFrame | None = None) -> RuleResult:
    engine = SparkRules()
    if asked.kind is RuleKind.UNIQUE:
        return judge(asked, Facts(engine.doubles(rows, other, PARTS, asked)))
    if asked.kind is RuleKind.REFERENCES:
        assert other is not None
        return judge(asked, Facts(engine.strangers(rows, other, PARTS, asked), against="now"))
    scan = engine.scan(rows, PARTS, [asked], [])
    if base is None:
        return judge(asked, Facts(numbers_of(asked, scan), ends=ENDS))
    before = engine.scan(base, PARTS, [asked], [])
    if asked.kind is RuleKind.DRIFT:
        return judge(asked, Facts({}, distances=distances_of(asked, scan, before)))
    return judge(asked, Facts(numbers_of(asked, scan), numbers_of(asked, before)))


BY_ROW = {
    "not_null": (rule("not_null", "id", "day"), rule("not_null", "amount"), 1),
    "not_null where": (rule("not_null", "amount", where="id < 4"), rule("not_null", "amount", where="id >= 3"), 1),
    "range": (rule("range", "amount", minimum="10", maximum="30"), rule("range", "amount", minimum="20"), 1),
    "range of text": (rule("range", "day", maximum="z"), rule("range", "day", minimum="n"), 2),
    "range of time": (
        rule("range", "at", minimum="2026-01-05T10:00:00"),
        rule("range", "at", maximum="2026-01-06T00:00:00"),
        1,
    ),
    "accepted": (
        rule("accepted", "status", values=("open", "closed")),
        rule("accepted", "status", values=("open",)),
        1,
    ),
    "accepted numbers": (rule("accepted", "id", values=("1", "2", "3", "4")), rule("accepted", "id", values=("1",)), 3),
    "pattern": (rule("pattern", "status", matches="^(op|cl)"), rule("pattern", "status", matches=r"^\w{4}$"), 1),
    "length": (rule("length", "status", minimum="4", maximum="6"), rule("length", "status", maximum="4"), 1),
    "monotonic": (rule("monotonic", "seq", order=("at",)), rule("monotonic", "seq", order=("id",), where="true"), 0),
}


@pytest.mark.parametrize("name", BY_ROW)
def test_rows_that_break_a_rule_are_counted_and_a_null_breaks_only_not_null(spark: SparkSession, name: str) -> None:
    holds, breaks, failing = BY_ROW[name]
    rows = frame(spark)
    assert judged(holds, rows).passed
    result = judged(breaks, rows)
    assert (result.passed, result.failing_rows) == (failing == 0, failing)
    assert judged(breaks, frame(spark, NOTHING)).passed


def test_a_sequence_that_falls_is_found_within_its_group_and_across_nulls(spark: SparkSession) -> None:
    values = "('mon', 'A', 1, 1), ('mon', 'A', 2, null), ('tue', 'A', 3, 0), ('mon', 'B', 1, 9), ('mon', 'C', 2, 3)"
    rows = frame(spark, f"VALUES {values} AS t(day, account, ts, seq)")
    asked = rule("monotonic", "seq", by=("account",), order=("ts",))
    assert judged(asked, rows).failing_rows == 1
    assert judged(asked.model_copy(update={"by": ()}), rows).failing_rows == 2
    # Each day on its own there is nothing that falls.
    assert judged(asked.model_copy(update={"per": Per.PARTITION}), rows).passed


def test_a_tolerance_lets_a_share_of_rows_pass_but_tells_how_many(spark: SparkSession) -> None:
    result = judged(rule("not_null", "amount", tolerance=0.25), frame(spark))
    assert (result.passed, result.failing_rows) == (True, 1)
    assert not judged(rule("not_null", "amount", tolerance=0.24), frame(spark)).passed


def test_a_share_that_the_scope_allows_can_be_too_much_for_a_partition(spark: SparkSession) -> None:
    asked = rule("not_null", "amount", tolerance=0.25, per=Per.PARTITION)
    result = judged(asked, frame(spark))
    assert not result.passed
    assert [(each.chunk, each.numbers["failing"], each.numbers["rows"]) for each in result.partitions] == [
        ("tue", 1, 2)
    ]
    assert result.detail == "not in 1 of 2 partitions, first tue: 1 of 2 rows without amount, 25% may"


def test_what_is_no_number_is_in_no_range(spark: SparkSession) -> None:
    rows = frame(spark, "VALUES ('mon', double('NaN')), ('mon', 1.0D), ('mon', null) AS t(day, x)")
    assert judged(rule("range", "x", minimum="0"), rows).failing_rows == 1


def test_a_key_twice_is_found_within_the_scope_and_across_its_edge(spark: SparkSession) -> None:
    asked = rule("unique", "id")
    rows = frame(spark)
    assert judged(asked, rows).passed
    twice = rows.unionAll(rows.where("id = 2"))
    result = judged(asked, twice)
    assert (result.passed, result.failing_rows, result.numbers["keys"]) == (False, 2, 1)
    outside = frame(spark, f"VALUES ('sun', 3, 1.00BD, 'x', null, 1), ('sun', 9, 1.00BD, 'x', null, 1) AS {COLUMNS}")
    result = judged(asked, rows, other=outside)
    assert (result.passed, result.failing_rows, result.numbers["outside"]) == (False, 1, 1)
    assert "again outside the scope" in result.detail
    # A key with a null is like no other, here and there.
    assert judged(rule("unique", "status", "amount"), rows.unionAll(rows.where("id = 4"))).passed
    assert judged(asked, frame(spark, NOTHING), other=outside).passed


def test_a_key_may_come_again_in_another_partition_if_that_is_all_that_is_asked(spark: SparkSession) -> None:
    rows = frame(spark, f"VALUES ('mon', 1, 1.00BD, 'x', null, 1), ('tue', 1, 1.00BD, 'x', null, 1) AS {COLUMNS}")
    assert not judged(rule("unique", "id"), rows).passed
    assert judged(rule("unique", "id", per=Per.PARTITION), rows).passed
    assert not judged(rule("unique", "id", per=Per.PARTITION), rows.unionAll(rows.where("day = 'tue'"))).passed


def test_values_that_another_table_does_not_know_are_counted(spark: SparkSession) -> None:
    known = spark.sql("SELECT * FROM VALUES (1L), (2L), (2L), (3L), (null) AS k(number)")
    asked = rule("references", "id", dataset="numbers", to=("number",))
    result = judged(asked, frame(spark), other=known)
    assert (result.passed, result.failing_rows, result.numbers["rows"]) == (False, 1, 4)
    assert result.detail == "1 of 4 rows with id unknown to numbers (now)"
    assert judged(asked.model_copy(update={"tolerance": 0.25}), frame(spark), other=known).passed
    assert judged(asked.model_copy(update={"where": "id < 4"}), frame(spark), other=known).passed
    by_part = judged(asked.model_copy(update={"per": Per.PARTITION}), frame(spark), other=known)
    assert [each.chunk for each in by_part.partitions] == ["tue"]
    # A null refers to nothing.
    assert judged(rule("references", "status", dataset="n", to=("number",), where="status IS NULL"), frame(spark),
                  other=spark.sql("SELECT 'x' AS number")).passed  # fmt: skip


def test_freshness_is_measured_from_the_end_of_the_scope(spark: SparkSession) -> None:
    rows = frame(spark)
    assert judged(rule("fresh", "at", within_seconds=2 * 3600), rows).passed
    late = judged(rule("fresh", "at", within_seconds=3600), rows)
    assert "2 hours before the scope's end, 1 hour is allowed" in late.detail
    assert not judged(rule("fresh", "at", within_seconds=10**6), frame(spark, NOTHING)).passed
    by_part = judged(rule("fresh", "at", within_seconds=3600, per=Per.PARTITION), rows)
    assert [each.chunk for each in by_part.partitions] == ["tue"]


@pytest.mark.parametrize(("kind", "moved"), [("sum", 63), ("mean", 21)])
def test_a_sum_or_mean_may_move_by_a_share_of_the_base(spark: SparkSession, kind: str, moved: int) -> None:
    base = frame(spark)
    stage = base.selectExpr("day", "id", "CAST(amount * 1.05 AS DECIMAL(12,2)) AS amount", "status", "at", "seq")
    assert judged(rule(kind, "amount", tolerance=0.05), stage, base).passed
    result = judged(rule(kind, "amount", tolerance=0.049), stage, base)
    assert (result.passed, result.numbers["stage"]) == (False, moved)
    nothing = frame(spark, NOTHING)
    assert judged(rule(kind, "amount"), stage, nothing).passed
    assert not judged(rule(kind, "amount"), nothing, base).passed
    by_part = judged(
        rule(kind, "amount", per=Per.PARTITION), stage.where("day = 'mon'").unionAll(base.where("day = 'tue'")), base
    )
    assert [each.chunk for each in by_part.partitions] == ["mon"]


def test_categories_that_move_are_told_with_the_one_that_moved_most(spark: SparkSession) -> None:
    base = spark.range(100).selectExpr("'mon' AS day", "IF(id < 50, 'DE', 'FR') AS country")
    stage = spark.range(200).selectExpr("'mon' AS day", "IF(id < 140, 'DE', 'FR') AS country")
    result = judged(rule("drift", "country", tolerance=0.1), stage, base)
    assert not result.passed
    assert result.numbers["distance"] == pytest.approx(0.2)
    assert "50% to 70%" in result.detail or "50% to 30%" in result.detail
    assert judged(rule("drift", "country", tolerance=0.2), stage, base).passed
    assert judged(rule("drift", "country", tolerance=0.0), base, base).passed
    assert judged(rule("drift", "country", tolerance=0.0), stage, base.where("false")).passed
    assert judged(rule("drift", "country", tolerance=0.9), stage.where("false"), base).numbers["distance"] == 1
    null = base.selectExpr("day", "nullif(country, 'FR') AS country")
    assert judged(rule("drift", "country", tolerance=0.1), null, base).numbers["distance"] == 0.5


@pytest.mark.parametrize("kind", ["int", "double", "decimal(10,2)"])
def test_numbers_drift_when_they_move_between_tenths_of_the_base(spark: SparkSession, kind: str) -> None:
    base = spark.range(1000).selectExpr("'mon' AS day", f"CAST(id - 300 AS {kind}) AS x")
    same = spark.range(1000).selectExpr("'mon' AS day", f"CAST(999 - id - 300 AS {kind}) AS x")
    moved = spark.range(1000).selectExpr("'mon' AS day", f"CAST(id - 100 AS {kind}) AS x")
    assert judged(rule("drift", "x"), same, base).numbers["distance"] == 0
    found = judged(rule("drift", "x"), moved, base).numbers["distance"]
    assert found == pytest.approx(0.2, abs=0.03)


def test_days_drift_by_partition(spark: SparkSession) -> None:
    day = "date_add(DATE'2026-01-01', CAST(id % 10 AS INT))"
    base = spark.range(200).selectExpr("IF(id < 100, 'mon', 'tue') AS day", f"{day} AS x")
    moved = spark.range(200).selectExpr(
        "IF(id < 100, 'mon', 'tue') AS day", f"IF(id < 100, {day}, date_add({day}, 90)) AS x"
    )
    result = judged(rule("drift", "x", tolerance=0.1, per=Per.PARTITION), moved, base)
    assert [each.chunk for each in result.partitions] == ["tue"]


@pytest.mark.parametrize("kind", ["sum", "mean"])
def test_a_sum_that_cannot_be_told_is_not_taken_for_a_smaller_one(spark: SparkSession, kind: str) -> None:
    """Too great for its type, or not a number, in one of the groups that are added up."""
    most = "CAST('99999999999999999999999999999999999999' AS DECIMAL(38,0))"
    for value in (most, "double('NaN')"):
        base = frame(spark, f"VALUES ('mon', {value}), ('mon', {value}), ('tue', 1) AS t(day, x)")
        assert not judged(rule(kind, "x"), base, base).passed
        assert not judged(rule(kind, "x", per=Per.PARTITION), base, base).passed


EVERY_SCANNED = [
    rule("not_null", "id", "amount"),
    rule("range", "amount", minimum="0"),
    rule("accepted", "status", values=("open",)),
    rule("pattern", "status", matches="o"),
    rule("length", "status", minimum="1"),
    rule("fresh", "at", within_seconds=60),
    rule("monotonic", "seq", order=("at",)),
    rule("sum", "amount"),
    rule("mean", "amount"),
    rule("drift", "status"),
    rule("drift", "amount", name="numbers", per=Per.PARTITION),
]


def jobs(spark: SparkSession, work: Callable[[], object]) -> int:
    """How many jobs Spark ran for it. The session of the tests does not split them on its own."""
    spark.sparkContext.setJobGroup("counted", "counted")
    before = len(spark.sparkContext.statusTracker().getJobIdsForGroup("counted"))
    try:
        work()
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", "")
    return len(spark.sparkContext.statusTracker().getJobIdsForGroup("counted")) - before


def test_every_rule_that_can_be_told_row_by_row_is_one_job(spark: SparkSession) -> None:
    assert {each.kind for each in EVERY_SCANNED} == set(RuleKind) - OWN_JOB - {RuleKind.ROWS}
    rows, metrics = frame(spark), [Metric(name="m", sql="median(id)", falls=0.5, by=by) for by in ((), ("status",))]
    engine = SparkRules()
    assert jobs(spark, lambda: engine.scan(rows, PARTS, EVERY_SCANNED, metrics)) == 1
    # Of a join, one more hands the keys of one side to every task.
    assert jobs(spark, lambda: engine.doubles(rows, rows, PARTS, rule("unique", "id"))) <= 2
    known = rule("references", "id", dataset="others", to=("id",))
    assert jobs(spark, lambda: engine.strangers(rows, rows, PARTS, known)) <= 2
    assert jobs(spark, lambda: engine.samples(rows, {}, PARTS, EVERY_SCANNED[:5], ())) == 1


def test_what_is_proven_counts_as_looked_at(spark: SparkSession, tmp_path: Path) -> None:
    frame(spark).write.parquet(str(tmp_path / "rows"))
    rows = spark.read.parquet(str(tmp_path / "rows"))
    rules = [
        rule("not_null", "id", "day"),
        rule("range", "amount", minimum="10", where="id < 3"),
        rule("accepted", "status", values=("open", "closed")),
    ]
    claims = [claim for each in rules for claim in each.claims]
    plain, proven = (SparkRules().scan(rows, PARTS, rules, [], digests=False, proven=each) for each in ((), claims))
    assert {name: part.numbers for name, part in proven.parts.items()} == {
        name: part.numbers for name, part in plain.parts.items()
    }
    # A claim that is not true shows that nobody looks: the rule would fail.
    untrue = rule("range", "seq", minimum="3")
    assert (
        SparkRules().scan(rows, PARTS, [untrue], [], proven=untrue.claims).parts["mon"].numbers["range"]["failing"] == 0
    )
    assert SparkRules().scan(rows, PARTS, [untrue], [], proven=claims).parts["mon"].numbers["range"]["failing"] == 2


def test_the_scan_has_the_digests_that_a_read_back_has(spark: SparkSession) -> None:
    from backcast.spark.engine import SparkEngine

    rows = frame(spark)
    scan = SparkRules().scan(rows, PARTS, EVERY_SCANNED, [])
    assert {name: part.digest for name, part in scan.parts.items()} == SparkEngine().digests(rows, PARTS)
    alone = SparkRules().scan(rows, {"all": EVERYTHING}, EVERY_SCANNED, [])
    assert alone.parts["all"].digest == SparkEngine().digests(rows, {"all": EVERYTHING})["all"]


def test_samples_show_failing_rows_and_hide_masked_columns(spark: SparkSession) -> None:
    rows = frame(spark)
    double = rows.unionAll(rows.where("id = 1"))
    rules = [rule("range", "amount", minimum="20"), rule("unique", "id"), rule("references", "id", to=("n",))]
    found = SparkRules().samples(double, {"references": spark.sql("SELECT 1 AS n")}, PARTS, rules, ("amount",))
    assert [(each["id"], each["amount"]) for each in found["range"]] == [("1", "***")] * 2
    assert {each["id"] for each in found["unique"]} == {"1"}
    assert {each["id"] for each in found["references"]} == {"2", "3", "4"}
    assert next(each for each in found["references"] if each["id"] == "4")["amount"] is None


def test_columns_of_a_query_may_hold_masked_values_under_another_name(spark: SparkSession) -> None:
    """Also under the name of a column that is not masked."""
    rows = frame(spark)
    rows.createOrReplaceTempView("judged")
    failing = spark.sql("SELECT id, CAST(amount AS STRING) AS status, amount AS other FROM judged WHERE id > 0")
    count, samples = SparkRules().told(failing, (rows,), ("amount",))
    assert count == 4
    assert {each["id"] for each in samples} == {"1", "2", "3", "4"}
    for name in ("other", "status"):
        assert {each[name] for each in samples} == {"***", None}
    _, shown = SparkRules().told(failing, (rows,), ())
    assert "10.00" in {each["other"] for each in shown}


def test_rows_are_counted_as_far_as_a_rule_is_about_them(spark: SparkSession) -> None:
    asked = rule("rows", input="events", where="id > 2")
    assert SparkRules().counted(frame(spark), {"": EVERYTHING}, asked) == {"": 2}
    assert SparkRules().counted(frame(spark), PARTS, asked) == {"mon": 0, "tue": 2}


def test_data_that_a_condition_cannot_read_is_told_and_not_raised_as_a_failure_of_spark(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "true")
    with pytest.raises(ChunkFailed, match="CAST_INVALID_INPUT"):
        SparkRules().scan(frame(spark), PARTS, [rule("not_null", "id", where="CAST(status AS INT) > 0")], [])


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (rule("not_null", "id", where="nonsense > 0"), "nonsense"),
        (rule("not_null", "id", where="true) OR (true"), "PARSE_SYNTAX_ERROR"),
        (rule("not_null", "id", where="count(*) > 1"), "WHERE"),
        (rule("range", "amount", minimum="ten"), "'ten' is not a value of type decimal"),
        (rule("accepted", "id", values=("x",)), "'x' is not a value of type int"),
        (rule("pattern", "status", matches="(("), "(("),
    ],
)
def test_a_rule_that_cannot_be_asked_is_told_before_a_run(spark: SparkSession, asked: Rule, says: str) -> None:
    (found,) = SparkRules().problems(frame(spark), [asked, *EVERY_SCANNED], [Metric(name="m", sql="count_if(id > 1)")])
    assert found[0] == asked.name
    assert says in found[1]
