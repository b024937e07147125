"""The digest tells multisets of rows apart, whatever their order, nulls and nesting."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from backcast.model.column import TimeColumn, TimeKind
from backcast.model.digest import EMPTY, Digest
from backcast.model.scope import Predicate, TimeClause
from backcast.spark.again import digest_again, shaken
from backcast.spark.digest import KEY, digest_by, digest_columns, digest_of_row, row_hash
from backcast.spark.engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def digests(spark: SparkSession, *literals: str) -> list[Digest]:
    """One digest for each frame, given as SQL VALUES; computed in one job."""
    union = None
    for number, values in enumerate(literals):
        each = spark.sql(f"SELECT '{number}' AS frame, struct(*) AS r FROM {values}")
        union = each if union is None else union.unionByName(each)
    assert union is not None
    columns = digest_columns(union.select("r.*").schema)
    rows = union.select("frame", "r.*").groupBy("frame").agg(*columns).orderBy(F.col("frame").cast("int")).collect()
    return [digest_of_row(row) for row in rows]


PAIRS = {
    "a null changes places": ("VALUES ('a', null, 'b') AS t(x, y, z)", "VALUES ('a', 'b', null) AS t(x, y, z)"),
    "a row is doubled": ("VALUES (1), (2) AS t(x)", "VALUES (1), (2), (2) AS t(x)"),
    "two equal pairs do not cancel": ("VALUES (1), (1) AS t(x)", "VALUES (2), (2) AS t(x)"),
    "arrays nest differently": (
        "VALUES (array(array(1), array(2))) AS t(x)",
        "VALUES (array(array(1, 2))) AS t(x)",
    ),
    "a null sits elsewhere in an array": (
        "VALUES (array('a', null)) AS t(x)",
        "VALUES (array(null, 'a')) AS t(x)",
    ),
    "an empty array is not a null one": (
        "VALUES (cast(array() AS array<int>)) AS t(x)",
        "VALUES (cast(null AS array<int>)) AS t(x)",
    ),
    "a struct of nulls is not a null struct": (
        "VALUES (named_struct('a', cast(null AS int))) AS t(x)",
        "VALUES (cast(null AS struct<a: int>)) AS t(x)",
    ),
    "map values are swapped": (
        "VALUES (map('a', 1, 'b', 2)) AS t(x)",
        "VALUES (map('a', 2, 'b', 1)) AS t(x)",
    ),
    "a map value is null": (
        "VALUES (map('a', array(1, null))) AS t(x)",
        "VALUES (map('a', array(1))) AS t(x)",
    ),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_different_rows_have_different_digests(spark: SparkSession, pair: tuple[str, str]) -> None:
    """Rows that plain hashing confuses are told apart."""
    left, right = digests(spark, *pair)
    assert left != right


@pytest.mark.parametrize("columns", [2, 62, 63, 130])
def test_rows_differ_by_which_of_their_columns_is_null(spark: SparkSession, columns: int) -> None:
    """Rows that are null but for one column, which has the same value in each."""
    rows = [", ".join("7" if at == kept else "CAST(null AS int)" for at in range(columns)) for kept in range(columns)]
    frame = spark.sql(f"SELECT * FROM VALUES {', '.join(f'({row})' for row in rows)}")
    assert frame.select(row_hash(frame.schema)).distinct().count() == columns


def test_equal_multisets_have_equal_digests(spark: SparkSession) -> None:
    """Order of rows, order of map entries, the sign of zero and the kind of NaN do not matter; empty is empty."""
    assert len(set(digests(spark, "VALUES (1), (2), (3) AS t(x)", "VALUES (3), (1), (2) AS t(x)"))) == 1
    assert len(set(digests(spark, "VALUES (map('a', 1, 'b', 2)) AS t(x)", "VALUES (map('b', 2, 'a', 1)) AS t(x)"))) == 1
    zeros = digests(spark, "VALUES (0.0D, double('NaN')) AS t(x, y)", "VALUES (-0.0D, -double('NaN')) AS t(x, y)")
    assert len(set(zeros)) == 1
    none = spark.sql("SELECT 1 AS x WHERE false")
    assert digest_of_row(none.agg(*digest_columns(none.schema)).collect()[0]) == EMPTY


def test_digests_of_parts_add_up_to_the_digest_of_the_whole(spark: SparkSession) -> None:
    """Grouped digests are digests of the groups' rows, also for a column whose name needs quoting."""
    frame = spark.range(100).withColumn("odd `name`.x", F.col("id") * 3)
    whole = digest_of_row(frame.agg(*digest_columns(frame.schema)).collect()[0])
    parts = {row[KEY]: digest_of_row(row) for row in digest_by(frame, F.col("id") % 3).collect()}
    assert {key: part.rows for key, part in parts.items()} == {0: 34, 1: 33, 2: 33}
    assert parts[0] + parts[1] + parts[2] == whole


def test_a_thousand_chunks_are_labelled_in_one_job(spark: SparkSession) -> None:
    """Each chunk gets its own digest however many there are: 400 nested conditions overflow the JVM's stack."""
    hours = TimeColumn(column="h", kind=TimeKind.INTEGER, format="epoch_seconds")

    def part(number: int) -> Predicate:
        return Predicate(clauses=(TimeClause(time=hours, ranges=((str(number), str(number + 1)),)),))

    found = SparkEngine().digests(spark.range(1000).selectExpr("id AS h"), {str(n): part(n) for n in range(1000)})
    assert {each.rows for each in found.values()} == {1}
    assert len({each.short() for each in found.values()}) == 1000


def test_the_second_time_rows_are_computed_by_other_tasks_on_both_sides_of_a_shuffle(spark: SparkSession) -> None:
    """Seen by what reads the number of the task that it is in."""

    def once(rows: DataFrame) -> Digest:
        return digest_of_row(rows.agg(*digest_columns(rows.schema)).collect()[0])

    # Of a bare range Spark knows how it is dealt out, and shuffles nothing.
    rows, task = spark.range(0, 40, 1, 2).selectExpr("id * 7 % 40 AS id"), F.spark_partition_id()
    sums = rows.groupBy("id").count()
    assert digest_again(shaken(rows).select("id", task)) != once(rows.select("id", task)), "before it"
    assert digest_again(sums.select("id", task)) != once(sums.select("id", task)), "behind it"
    assert digest_again(shaken(rows).groupBy("id").count()) == once(sums)
