"""The analysed plan tells what makes two runs differ, by the name under which it was called."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backcast.spark.inspection import inspect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("rand()", "rand"),
        ("randn(1)", "randn"),
        ("uuid()", "uuid"),
        ("current_timestamp()", "current_timestamp"),
        ("now()", "now"),
        ("current_date()", "current_date"),
        ("localtimestamp()", "localtimestamp"),
        ("unix_timestamp()", "current_timestamp"),
        ("monotonically_increasing_id()", "monotonically_increasing_id"),
        ("spark_partition_id()", "spark_partition_id"),
        ("shuffle(array(id))", "shuffle"),
        ("(SELECT max(r) FROM (SELECT rand() AS r FROM range(2)))", "rand"),
        ("transform(array(id), x -> x + rand())", "rand"),
    ],
)
def test_what_differs_between_runs_is_named_wherever_it_stands(spark: SparkSession, expression: str, name: str) -> None:
    nondeterministic, ordered, opaque = inspect(spark.range(3).selectExpr(f"{expression} AS x"))
    assert nondeterministic == (name,)
    assert (ordered, opaque) == ((), ())


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("SELECT first(id) FROM range(3)", "first"),
        ("SELECT last(id) FROM range(3)", "last"),
        ("SELECT any_value(id) FROM range(3)", "any_value"),
        ("SELECT collect_list(id) FROM range(3)", "collect_list"),
        ("SELECT max_by(id, id) FROM range(3)", "max_by"),
        ("SELECT row_number() OVER (ORDER BY id) FROM range(3)", "row_number"),
        ("SELECT lag(id) OVER (ORDER BY id) FROM range(3)", "lag"),
        ("SELECT id FROM range(3) LIMIT 1", "limit"),
    ],
)
def test_what_depends_on_the_order_of_rows_is_named(spark: SparkSession, query: str, name: str) -> None:
    assert inspect(spark.sql(query)) == ((), (name,), ())


def test_dropped_duplicates_and_samples_are_named(spark: SparkSession) -> None:
    assert inspect(spark.range(3).dropDuplicates(["id"]))[1] == ("dropDuplicates",)
    assert inspect(spark.range(3).sample(0.5))[0] == ("sample",)


def test_a_python_function_cannot_be_looked_into(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    twice = F.udf(lambda number: number * 2, "bigint")
    assert inspect(spark.range(3).select(twice("id"))) == ((), (), ("<lambda>",))


def test_a_plain_query_has_nothing_to_tell(spark: SparkSession) -> None:
    rows = spark.sql("SELECT id, sum(id) AS total, max(id) FROM range(3) GROUP BY id ORDER BY id")
    assert inspect(rows) == ((), (), ())
