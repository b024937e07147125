"""Metrics of gates measured on small frames: of the scope, by part, and by groups of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.model.rule import Metric, Per
from backcast.ports.rules import Part
from backcast.spark.rules import SparkRules
from backcast.validate.rules import Facts, judge, numbers_of
from tests.spark.test_rules import EVERY_SCANNED, PARTS, frame, rule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_metrics_come_by_part_and_of_the_whole_even_if_parts_do_not_add_up(spark: SparkSession) -> None:
    metrics = [
        Metric(name="middle", sql="median(id)", falls=0.5),
        Metric(name="rows", sql="count(*)", falls=0.5, per=Per.PARTITION),
    ]
    scan = SparkRules().scan(frame(spark), PARTS, [], metrics)
    assert scan.whole.metrics["middle"] == 2.5
    assert [part.metrics["rows"] for part in scan.parts.values()] == [2, 2]
    # Copies for the whole change neither counts nor digests of the parts.
    plain = SparkRules().scan(frame(spark), PARTS, [], [])
    assert [part.digest for part in scan.parts.values()] == [part.digest for part in plain.parts.values()]


def test_a_metric_of_groups_comes_for_each_of_them_and_by_part(spark: SparkSession) -> None:
    by_status = Metric(name="rows", sql="count(*)", by=("status",), falls=0.5)
    metrics = [
        by_status,
        Metric(name="greatest", sql="max(id)", by=("status", "dayofweek(at) > 2"), falls=0.5, per=Per.PARTITION),
        Metric(name="middle", sql="median(id)", falls=0.5),
    ]
    scan = SparkRules().scan(frame(spark), PARTS, EVERY_SCANNED, metrics)

    def told(name: str, part: Part) -> dict[str, float | None]:
        return {each.label: each.value for each in part.groups.get(name, {}).values()}

    assert told("rows", scan.whole) == {"open": 2, "closed": 1, "null": 1}
    assert told("greatest", scan.parts["mon"]) == {"open, false": 1, "closed, false": 2}
    assert told("greatest", scan.parts["tue"]) == {"open, true": 3, "null, null": 4}
    assert (scan.whole.metrics, told("rows", scan.parts["mon"])) == ({"middle": 2.5}, {})
    plain = SparkRules().scan(frame(spark), PARTS, [], [])
    assert [part.digest for part in scan.parts.values()] == [part.digest for part in plain.parts.values()]
    crowd = spark.sql("SELECT 'mon' AS day, id AS status FROM range(10001)")
    assert SparkRules().scan(crowd, PARTS, [], [by_status]).crowded == {"rows"}


def test_a_metric_is_asked_of_nothing_but_the_rows_that_it_is_about(spark: SparkSession) -> None:
    """On Tuesday, and among the rows that break the rule, nobody closed anything: no reason to divide by zero."""
    share = Metric(name="share", sql="sum(amount) / count_if(status = 'closed')", falls=0.5)
    scan = SparkRules().scan(frame(spark), PARTS, [rule("range", "amount", minimum="20"), rule("drift", "id")], [share])
    assert scan.whole.metrics == {"share": 60}


def test_a_metric_may_have_the_name_of_a_rule(spark: SparkSession) -> None:
    asked = rule("range", "amount", minimum="20", name="amount")
    metric = Metric(name="amount", sql="sum(amount)", falls=0.5, per=Per.PARTITION)
    scan = SparkRules().scan(frame(spark), PARTS, [asked], [metric])
    assert judge(asked, Facts(numbers_of(asked, scan))).failing_rows == 1
    assert [part.metrics["amount"] for part in scan.parts.values()] == [30, 30]


def test_a_metric_must_be_one_number_of_many_rows(spark: SparkSession) -> None:
    asked = {"m": ("id + 1", ()), "n": ("sum(", ()), "o": ("count(*)", ("nowhere",)), "p": ("count(*)", ("count(*)",))}
    metrics = [Metric(name=name, sql=sql, by=by) for name, (sql, by) in asked.items()]
    found = SparkRules().problems(frame(spark), [], [*metrics, Metric(name="q", sql="count(*)", by=("status",))])
    assert [name for name, _ in found] == ["m", "n", "o", "p"]
