"""Our diff against that of pyspark-extension, on rows that hypothesis makes: many cases in one frame, told by part."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gresearch.spark.diff import Differ, DiffOptions
from gresearch.spark.diff.comparator import DiffComparator
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from backcast.model.diff import DiffRules
from backcast.model.scope import Predicate, ValueClause
from backcast.ports.comparing import Comparing
from backcast.spark.diff import SparkComparer

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

SCHEMA = (
    "part int, k int, n bigint, d double, m decimal(10,3), s string, l array<int>, r struct<a: int, c: string>,"
    " b boolean, day date, at timestamp, wall timestamp_ntz, tags map<string, double>"
)
DOUBLES = [0.0, -0.0, float("nan"), 1.5, float("inf")]
MOMENTS = [
    datetime(2026, 3, 29, 1, 30, tzinfo=UTC),
    datetime(2026, 3, 29, 1, 30, 0, 1, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
]
VALUES = st.tuples(
    st.none() | st.integers(-2, 2),
    st.none() | st.sampled_from(DOUBLES),
    st.none() | st.sampled_from([Decimal("0.000"), Decimal("1.250"), Decimal("-7.000")]),
    st.none() | st.sampled_from(["", "a", "b", "null"]),
    st.none() | st.lists(st.none() | st.integers(0, 1), max_size=2),
    st.none() | st.tuples(st.none() | st.integers(0, 1), st.none() | st.sampled_from(["x", ""])),
    st.none() | st.booleans(),
    st.none() | st.sampled_from([date(2026, 3, 29), date(1969, 12, 31), date(1582, 10, 4)]),
    st.none() | st.sampled_from(MOMENTS),
    st.none() | st.sampled_from([each.replace(tzinfo=None) for each in MOMENTS]),
    st.none() | st.dictionaries(st.sampled_from(["x", "y"]), st.none() | st.sampled_from(DOUBLES), max_size=2),
)
SIDE = st.dictionaries(st.none() | st.integers(0, 4), VALUES, max_size=4)
CASES = st.lists(st.tuples(SIDE, SIDE), min_size=12, max_size=12)
MULTISET = st.lists(st.sampled_from(["a", "b", None]), max_size=5)
MULTISETS = st.lists(st.tuples(MULTISET, MULTISET), min_size=12, max_size=12)
PARTS = {str(part): Predicate(clauses=(ValueClause(column="part", values=(str(part),)),)) for part in range(12)}
NAMES = {"I": "added", "D": "removed", "C": "changed"}


class Entries(DiffComparator):  # type: ignore[misc]  # the package has no types
    """The oracle's answer for maps, which Spark itself cannot compare: their entries in order."""

    def equiv(self, left: Column, right: Column) -> Column:
        here, there = (F.array_sort(F.map_entries(each)) for each in (left, right))
        return here.eqNullSafe(there)


def sides(spark: SparkSession, cases: list[Any]) -> tuple[DataFrame, DataFrame]:
    made = []
    for side in (0, 1):
        rows = [(part, key, *values) for part, case in enumerate(cases) for key, values in case[side].items()]
        made.append(spark.createDataFrame(rows, SCHEMA).coalesce(1))
    return made[0], made[1]


# Not made smaller when it fails: each try is a handful of Spark jobs.
@settings(
    max_examples=5,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(cases=CASES)
def test_rows_that_differ_by_key_are_those_that_the_oracle_finds(spark: SparkSession, cases: list[Any]) -> None:
    """Added, removed and changed keys and the columns that changed, part by part, with nulls in the key."""
    left, right = sides(spark, cases)
    options = DiffOptions().with_change_column("changes").with_column_name_comparator(Entries(), "tags")
    oracle = Differ(options)
    expected: Counter[tuple[Any, ...]] = Counter()
    for row in oracle.diff(left, right, "part", "k").where("diff <> 'N'").collect():
        changes = tuple(row["changes"] or ()) if row["diff"] == "C" else ()
        expected[str(row["part"]), row["k"], NAMES[row["diff"]], changes] += 1
    asked = Comparing(DiffRules(key=("part", "k")), parts=PARTS)
    found = SparkComparer().changed_rows(left, right, asked).collect()
    ours = Counter((row["_chunk"], row["k"], row["_change"], tuple(row["_columns"])) for row in found)
    assert ours == expected
    counted = SparkComparer().count(left, right, asked)
    by_kind = Counter((part, kind) for part, _, kind, _ in expected.elements())
    told = {
        (each.chunk, kind): getattr(each.rows, kind)
        for each in counted.partitions
        if each.rows is not None
        for kind in NAMES.values()
    }
    assert {where: number for where, number in told.items() if number} == dict(by_kind)


@settings(
    max_examples=3,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    cases=st.lists(st.tuples(*[st.lists(st.sampled_from(["a", "b", None]), max_size=5)] * 2), min_size=12, max_size=12)
)
def test_multisets_are_those_of_except_all(spark: SparkSession, cases: list[Any]) -> None:
    """Without a key a row counts as often as it occurs."""
    left, right = (
        spark.createDataFrame(
            [(part, value) for part, case in enumerate(cases) for value in case[side]], "part int, x string"
        ).coalesce(1)
        for side in (0, 1)
    )
    expected = {"added": right.exceptAll(left).count(), "removed": left.exceptAll(right).count()}
    found = SparkComparer().count(left, right, Comparing(DiffRules(), parts=PARTS)).rows
    ours = {"added": 0, "removed": 0} if found is None else {"added": found.added, "removed": found.removed}
    assert ours == expected
