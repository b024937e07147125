"""Transforms on real Spark: what they get, what they may return, and how their failures are told."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from backcast.errors import ChunkFailed, InvalidRequest
from backcast.model.pipeline import Job
from backcast.model.states import Execution
from backcast.model.time import Interval
from backcast.project.loading import LoadedTransform, load_transform
from backcast.project.session import RESULT_SETTINGS, result_settings
from backcast.testing import check_transform
from tests.unit.projects import GOOD, project, write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WINDOW = Interval(start=datetime(2026, 1, 1, tzinfo=UTC), end=datetime(2026, 1, 2, tzinfo=UTC))
JOB = Job(run_id="run-1", execution=Execution.BACKFILL, window=WINDOW, clock=datetime(2026, 3, 1, tzinfo=UTC))
SQL = GOOD.replace("transform: pipelines.daily:daily", "sql: models/daily.sql")


@pytest.fixture
def events(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, "a"), (2, "b"), (3, "b")], "id bigint, shop string")


def python(root: Path, body: str) -> LoadedTransform:
    lines = ["import datetime", "from pyspark.sql import functions as F", "def daily(inputs, ctx):"]
    text = "\n".join([*lines, *(f"    {line}" for line in body.splitlines())])
    return load_transform(project(root, daily=text), "daily")


def sql(root: Path, text: str) -> LoadedTransform:
    write(root, {"models/daily.sql": text})
    return load_transform(project(root, SQL), "daily")


def rows(frame: DataFrame) -> list[Any]:
    return sorted(tuple(row) for row in frame.collect())


def test_a_function_gets_inputs_and_context(tmp_path: Path, events: DataFrame) -> None:
    body = """\
assert (ctx.run_id, str(ctx.execution), ctx.clock().month) == ("run-1", "BACKFILL", 3)
assert ctx.window.start.day == 1
return inputs["events"].where("id > 1").select("id", F.lit(ctx.derive_id("x")).alias("made"))"""
    result = rows(python(tmp_path, body).apply({"events": events}, JOB))
    assert [row[0] for row in result] == [2, 3]
    assert len({row[1] for row in result}) == 1


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = 1\nraise ValueError('no luck')", "pipelines/daily.py:5: ValueError: no luck"),
        (
            "return inputs['event']",
            "pipelines/daily.py:4: NoSuchInput: the pipeline has no input called 'event'; did you",
        ),
        ("return inputs['events'].select('nowhere')", "pipelines/daily.py:4: AnalysisException: "),
        ("inputs['events'].count()", "pipelines.daily:daily must return a DataFrame, got None; is a `return` missing?"),
        ("return [1]", "pipelines.daily:daily must return a DataFrame, got list"),
        ("return ctx.spark.readStream.format('rate').load()", "pipelines.daily:daily returned a stream"),
    ],
)
def test_a_transform_that_fails_is_named_with_its_line(
    tmp_path: Path, events: DataFrame, body: str, expected: str
) -> None:
    with pytest.raises(ChunkFailed) as caught:
        python(tmp_path, body).apply({"events": events}, JOB)
    assert caught.value.message.startswith(expected)
    assert "\n" not in caught.value.message


def test_sql_names_its_inputs_like_tables(tmp_path: Path, events: DataFrame) -> None:
    query = (
        "-- shops\nWITH b AS (SELECT * FROM events WHERE shop = 'b')\nSELECT shop, count(*) FROM b GROUP BY 1; -- end"
    )
    assert rows(sql(tmp_path, query).apply({"events": events}, JOB)) == [("b", 2)]


def test_sql_knows_the_run(tmp_path: Path, events: DataFrame) -> None:
    query = "SELECT DISTINCT :run_id, :execution, date(:window_start), date(:window_end), :clock FROM events"
    expected = ("run-1", "BACKFILL", date(2026, 1, 1), date(2026, 1, 2))
    result = rows(sql(tmp_path, query).apply({"events": events}, JOB))
    assert [row[:4] for row in result] == [expected]
    assert rows(sql(tmp_path, "SELECT id FROM events").apply({"events": events}, JOB)) == [(1,), (2,), (3,)]


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE {table}",
        "INSERT INTO {table} VALUES (1)",
        "WITH x AS (SELECT 1) INSERT INTO {table} SELECT * FROM x",
        "SELECT 1; DROP TABLE {table}",
        "SELECT 1) ; DROP TABLE {table} --",
        "FROM events INSERT INTO {table} SELECT id",
        "CREATE TABLE {table}_2 AS SELECT 1",
        "SET spark.sql.ansi.enabled=false",
    ],
)
def test_sql_can_only_read(
    tmp_path: Path, spark: SparkSession, namespace: str, events: DataFrame, statement: str
) -> None:
    table = f"{namespace}.kept"
    spark.sql(f"CREATE TABLE {table} (id bigint) USING iceberg")
    ansi = spark.conf.get("spark.sql.ansi.enabled")
    with pytest.raises((ChunkFailed, InvalidRequest), match=r"ParseException|there is more after the `;`"):
        sql(tmp_path, statement.format(table=table)).apply({"events": events}, JOB)
    assert spark.table(table).count() == 0
    assert not spark.catalog.tableExists(f"{table}_2")
    assert spark.conf.get("spark.sql.ansi.enabled") == ansi


def test_sql_leaves_the_sessions_views_as_they_were(tmp_path: Path, spark: SparkSession, events: DataFrame) -> None:
    spark.range(7).createOrReplaceTempView("events")
    shops = spark.createDataFrame([("b", "Lyon")], "shop string, city string")
    transform = sql(tmp_path, "SELECT id, city FROM events JOIN shops USING (shop)")
    result = transform.apply({"events": events, "shops": shops}, JOB)
    assert spark.table("events").count() == 7
    assert not spark.catalog.tableExists("shops")
    assert rows(result) == [(2, "Lyon"), (3, "Lyon")], "the query is bound to its inputs, not to the names"
    spark.catalog.dropTempView("events")


def test_sql_jobs_side_by_side_see_their_own_inputs(tmp_path: Path, spark: SparkSession) -> None:
    transform = sql(tmp_path, "SELECT id FROM events")
    results: dict[int, list[Any]] = {}

    def work(number: int) -> None:
        frame = spark.range(number, number + 1)
        results[number] = [transform.apply({"events": frame}, JOB).collect()[0][0] for _ in range(5)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: [number] * 5 for number in range(4)}


def test_settings_that_change_results_are_recorded(spark: SparkSession) -> None:
    found = result_settings(spark)
    assert found["spark.sql.session.timeZone"] == "UTC"
    assert {*RESULT_SETTINGS, "spark.version"} <= found.keys()
    spark.conf.set("spark.sql.legacy.sizeOfNull", "false")
    try:
        assert result_settings(spark)["spark.sql.legacy.sizeOfNull"] == "false"
    finally:
        spark.conf.unset("spark.sql.legacy.sizeOfNull")
    assert result_settings(spark) == found


def add_one(inputs: Any, ctx: Any) -> Any:
    return inputs["numbers"].selectExpr("id + 1 AS id")


def test_check_transform_compares_rows_in_any_order(spark: SparkSession) -> None:
    numbers = [{"id": 1}, {"id": 2}]
    result = check_transform(add_one, {"numbers": numbers}, expected=[{"id": 3}, {"id": 2}], spark=spark)
    assert rows(result) == [(2,), (3,)]
    with pytest.raises(AssertionError, match=r"unexpected: {'id': 2}\n  expected: {'id': 3}"):
        check_transform(add_one, {"numbers": numbers}, expected=[{"id": 3}, {"id": 3}], spark=spark)
    with pytest.raises(AssertionError, match="columns differ"):
        check_transform(
            add_one, {"numbers": numbers}, expected=spark.createDataFrame([("2",)], "id string"), spark=spark
        )


def test_check_transform_finds_a_transform_that_is_not_repeatable(spark: SparkSession) -> None:
    calls = iter(range(100))

    def changing(inputs: Any, ctx: Any) -> Any:
        return inputs["numbers"].selectExpr(f"id + {next(calls)} AS id")

    with pytest.raises(AssertionError, match="of the first call"):
        check_transform(changing, {"numbers": [{"id": 1}]}, spark=spark)


def test_check_transform_says_what_it_needs(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="input 'numbers' has no rows"):
        check_transform(add_one, {"numbers": []}, spark=spark)
    with pytest.raises(AssertionError, match="must return a DataFrame, got int"):
        check_transform(lambda inputs, ctx: 3, {"numbers": [{"id": 1}]}, spark=spark)  # type: ignore[arg-type, return-value]
