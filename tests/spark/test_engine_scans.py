"""What the engine finds in rows: keys that are missing or doubled, and the digest of each of many parts."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from pyspark.sql.functions import udf

from backcast.model.column import TimeColumn, TimeKind
from backcast.model.digest import EMPTY
from backcast.model.scope import during
from backcast.model.time import Interval
from backcast.spark.by_time import last_time
from backcast.spark.engine import SparkEngine
from backcast.testing.samples import DAY_COLUMN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ("(1, 'a'), (1, 'b'), (2, 'a')", (0, 0, "")),
        ("(1, 'a'), (1, 'a'), (1, 'a'), (2, 'b'), (2, 'b')", (0, 2, "x=1, y=a")),
        ("(1, null), (1, null), (null, 'a'), (3, 'c')", (3, 0, "")),
        ("(1, null), (2, 'b'), (2, 'b')", (1, 1, "x=2, y=b")),
    ],
    ids=["unique", "doubled and trebled", "missing is not doubled", "both"],
)
def test_a_key_is_doubled_once_however_often_it_occurs(
    spark: SparkSession, values: str, found: tuple[int, int, str]
) -> None:
    rows = spark.sql(f"SELECT * FROM VALUES {values} AS t(x, y)")
    engine = SparkEngine()
    assert engine.key_problems(rows, ("x", "y")) == found
    assert engine.doubled(rows, ("x", "y")).distinct().count() == found[1]


def test_no_row_has_no_problem_with_its_key(spark: SparkSession) -> None:
    assert SparkEngine().key_problems(spark.range(0), ("id",)) == (0, 0, "")


def test_a_row_with_a_null_in_its_key_is_missing_only_where_no_such_row_is(spark: SparkSession) -> None:
    """Rows that arrived live against a stage: of one table, so with the same columns."""
    table = spark.sql("SELECT * FROM VALUES (1, 'a'), (1, null), (null, null), (null, 'b') AS t(x, `y.z`)")
    staged = table.where("x IS NULL")
    assert SparkEngine().missing_keys(table, table, ("x", "y.z")) == (0, [])
    assert SparkEngine().missing_keys(table, staged, ("x", "y.z")) == (2, ["x=1, y.z=None", "x=1, y.z=a"])


@pytest.mark.parametrize(
    ("column", "values", "newest"),
    [
        (TimeColumn(column="x", kind=TimeKind.DATE), "DATE'2026-01-02', DATE'9999-12-31', null", "2026-01-02"),
        (TimeColumn(column="x", kind=TimeKind.DATE), "DATE'2026-01-02', DATE'2026-01-03'", "2026-01-03"),
        (TimeColumn(column="x", zone="Asia/Tokyo"), "TIMESTAMP'2026-01-01 20:00:00Z'", "2026-01-02 05:00"),
        (
            TimeColumn(column="x", kind=TimeKind.STRING, format="yyyy-MM-dd"),
            "'2026-01-02', 'none', '2025-12-31'",
            "2026-01-02",
        ),
        (TimeColumn(column="x", kind=TimeKind.DATE), "DATE'9999-12-31'", None),
    ],
    ids=["a day that stands for no end", "dates", "wall clock", "no time at all", "nothing but the future"],
)
def test_the_newest_time_is_none_that_only_stands_for_one(
    spark: SparkSession, column: TimeColumn, values: str, newest: str | None
) -> None:
    rows = spark.sql(f"SELECT explode(array({values})) AS x")
    found = last_time(rows, column, datetime.fromisoformat("2026-06-01"))
    assert found == (None if newest is None else datetime.fromisoformat(newest))


def test_a_thousand_parts_have_a_digest_each(spark: SparkSession) -> None:
    """Part n holds one row when n is even and none when it is odd."""
    days = [Interval(start=FIRST + timedelta(days=n), end=FIRST + timedelta(days=n + 1)) for n in range(1000)]
    parts = {str(number): during((DAY_COLUMN,), (day,)) for number, day in enumerate(days)}
    rows = spark.range(500).selectExpr("id", "date_add(DATE '2020-01-01', CAST(id * 2 AS INT)) AS day")
    digests = SparkEngine().digests(rows, parts)
    assert list(digests) == list(parts)
    assert [digests[str(number)].rows for number in range(1000)] == [1, 0] * 500
    assert digests["1"] == EMPTY
    assert len({digests[str(number)] for number in range(0, 1000, 2)}) == 500


def test_a_job_that_takes_too_long_is_ended_from_beside_and_what_follows_is_not(spark: SparkSession) -> None:
    asleep = udf(lambda number: time.sleep(120) or number, "bigint")
    engine, began = SparkEngine(), time.monotonic()
    with (
        pytest.raises(Exception, match=r"(?i)cancel"),
        engine.cancelled_when(lambda: time.monotonic() > began + 1) as was_cancelled,
    ):
        spark.range(2).select(asleep("id").alias("id")).collect()
    assert was_cancelled()
    assert time.monotonic() < began + 60
    with engine.cancelled_when(lambda: False) as was_cancelled:
        assert spark.range(3).count() == 3
    assert not was_cancelled()
