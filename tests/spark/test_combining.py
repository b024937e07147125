"""Whether each row is made of one record of a topic: told by the analysed plan, also where names stand between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backcast.spark.combining import combining, remembered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GROUPS, _DUPLICATES, _JOINS = ("groups them",), ("drops duplicates among them",), ("joins them with each other",)
_WINDOWS = ("ranks or compares them over a window",)


@pytest.mark.parametrize(
    ("query", "does"),
    [
        ("SELECT value + 1 AS v FROM topic WHERE value > 1", ()),
        ("SELECT t.value, d.name FROM topic t JOIN days d ON d.id = t.value", ()),
        (
            "SELECT t.value, d.n FROM topic t LEFT JOIN (SELECT id, sum(1) AS n FROM days GROUP BY 1) d ON id = value",
            (),
        ),
        ("SELECT value FROM topic WHERE value IN (SELECT max(id) FROM days)", ()),
        ("SELECT explode(array(value, 2)) AS v FROM topic", ()),
        ("SELECT value FROM topic WHERE value > 1 UNION ALL SELECT value FROM topic WHERE value < 1", ()),
        ("WITH x AS (SELECT * FROM topic) SELECT d.name FROM x JOIN days d ON d.id = x.value", ()),
        ("SELECT window.start, count(*) FROM topic GROUP BY window(timestamp, '1 hour')", _GROUPS),
        (
            "WITH x AS (SELECT * FROM topic), y AS (SELECT * FROM x) SELECT value, count(*) FROM y GROUP BY value",
            _GROUPS,
        ),
        ("SELECT DISTINCT value FROM topic", _DUPLICATES),
        ("SELECT a.value FROM topic a JOIN topic b ON a.value = b.value + 1", _JOINS),
        ("WITH x AS (SELECT * FROM topic) SELECT a.value FROM x a JOIN topic b ON a.value = b.value + 1", _JOINS),
        ("SELECT value FROM topic WHERE value IN (SELECT max(value) FROM topic)", (*_GROUPS, *_JOINS)),
        ("SELECT value, (SELECT max(id) FROM days) AS m FROM topic", ()),
        (
            "SELECT value, row_number() OVER (PARTITION BY value ORDER BY timestamp) AS n FROM topic",
            _WINDOWS,
        ),
    ],
)
def test_what_combines_records_of_a_topic_is_told_and_what_looks_up_tables_is_not(
    spark: SparkSession, query: str, does: tuple[str, ...]
) -> None:
    topic = spark.sql("SELECT current_timestamp() AS timestamp, id AS value FROM range(3)")
    spark.sql("SELECT id, 'monday' AS name FROM VALUES (1), (2) AS t(id)").createOrReplaceTempView("days")
    topic.createOrReplaceTempView("topic")
    assert combining(spark.sql(query), [topic]) == does


def test_a_stream_remembers_what_a_batch_combines(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load()
    assert remembered(stream.where("value > 1")) == ()
    assert remembered(stream.dropDuplicates(["value"])) == _DUPLICATES
    assert remembered(stream.groupBy("value").count()) == _GROUPS


def test_a_plan_deeper_than_pythons_stack_is_looked_at(spark: SparkSession) -> None:
    topic = spark.range(3)
    rows = topic
    for _ in range(550):
        rows = rows.select("id")
    assert combining(rows, [topic]) == ()
