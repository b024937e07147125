"""Two frames compared: digests of parts, then columns and rows where digests differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest

from backcast.model.column import TimeColumn, TimeKind
from backcast.model.diff import Comparison, DiffRules, RowSample, Tolerance
from backcast.model.scope import EVERYTHING
from backcast.model.time import Grain
from backcast.ports.comparing import Comparing
from backcast.spark.diff import SparkComparer
from backcast.spark.engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CHANGES = ("added", "removed", "changed", "format_only", "tolerated")


def frame(spark: SparkSession, values: str) -> DataFrame:
    """`(1, 'a') AS t(k, x)`."""
    return spark.sql(f"SELECT * FROM VALUES {values}")


def compared(
    left: DataFrame, right: DataFrame, key: str = "", rules: Mapping[str, Any] | None = None, **how: Any
) -> Comparison:
    given = DiffRules(key=tuple(key.split()), **(rules or {}))
    return SparkComparer().compare(left, right, Comparing(given, **how))


def counts(found: Comparison) -> dict[str, int]:
    """What differs, without zeros."""
    if found.rows is None:
        return {}
    return {name: amount for name in CHANGES if (amount := getattr(found.rows, name))}


def told(sample: RowSample) -> tuple[Any, ...]:
    cells = tuple((cell.column, cell.before, cell.after) for cell in sample.cells)
    return sample.change, tuple(sample.key.values()), cells


def test_rows_are_told_by_key_with_the_cells_that_changed(spark: SparkSession) -> None:
    left = frame(spark, "(1, 'a', 1.5), (2, 'b', 2.5), (3, 'c', 3.5), (null, 'n', 0.0) AS t(k, x, y)")
    right = frame(spark, "(1, 'a', 1.5), (2, 'B', 2.5), (4, 'd', 4.5), (null, 'n', null) AS t(k, x, y)")
    found = compared(left, right, "k")
    assert counts(found) == {"added": 1, "removed": 1, "changed": 2}
    assert [told(each) for each in found.samples] == [
        ("changed", ("2",), (("x", "b", "B"),)),
        ("changed", (None,), (("y", "0.0", None),)),
        ("added", ("4",), (("x", None, "d"), ("y", None, "4.5"))),
        ("removed", ("3",), (("x", "c", None), ("y", "3.5", None))),
    ]
    columns = {each.name: each for each in found.columns}
    assert (columns["x"].changed, columns["y"].changed, columns["k"].changed) == (1, 1, 0)
    assert columns["y"].base is not None
    assert columns["y"].stage is not None
    assert (columns["y"].base.sum, columns["y"].base.nulls) == ("7.5", 0)
    assert (columns["y"].stage.sum, columns["y"].stage.nulls, columns["y"].stage.max) == ("8.5", 1, "4.5")


def test_nothing_changed_is_one_pass_over_each_side(spark: SparkSession) -> None:
    """Equal digests end it: no rows are compared, whatever their order."""
    left, right = (spark.range(100).selectExpr("id", f"{sign}0.0D AS z").orderBy(order) for sign, order in SAME)
    found = compared(left, right, "id")
    assert found.rows is None
    assert (found.count("same"), found.columns, found.samples) == (1, (), ())
    assert found.summary() == "no row differs"


SAME = (("", "id"), ("-", "z"))


def test_identical_rows_without_a_key_keep_their_number(spark: SparkSession) -> None:
    """255 identical legitimate rows stay 255: two more of them are two, and they are no duplicates of one."""
    left = spark.range(255).selectExpr("'hit' AS x").unionByName(spark.sql("SELECT 'old' AS x"))
    same = spark.range(255).selectExpr("'hit' AS x").unionByName(spark.sql("SELECT 'old' AS x"))
    assert compared(left, same).count("same") == 1
    more = compared(left, spark.range(257).selectExpr("'hit' AS x"))
    assert counts(more) == {"added": 2, "removed": 1}
    assert [(each.change, each.times, each.cells[0].after) for each in more.samples] == [
        ("added", 2, "hit"),
        ("removed", 1, None),
    ]
    assert more.rows is not None
    assert more.rows.by == "rows"
    assert more.columns[0].changed is None


@pytest.mark.parametrize("unique", [False, True], ids=["unknown", "said to be unique"])
def test_a_key_that_occurs_twice_neither_crashes_nor_multiplies(spark: SparkSession, unique: bool) -> None:
    """Its rows are compared as multisets, all others by key, and somebody is told."""
    left = frame(spark, "(1, 'a'), (1, 'a'), (1, 'b'), (2, 'x'), (3, 'y') AS t(k, x)")
    right = frame(spark, "(1, 'a'), (1, 'c'), (2, 'X'), (3, 'y') AS t(k, x)")
    found = compared(left, right, "k", unique=unique)
    assert counts(found) == {"added": 1, "removed": 2, "changed": 1}
    assert found.rows is not None
    assert found.rows.doubled == 1
    assert found.notes == ("1 key more than once on a side: compared as multisets of whole rows",)
    assert ("changed", ("2",), (("x", "x", "X"),)) in [told(each) for each in found.samples]


def test_a_doubled_key_of_one_side_is_found_behind_a_promise(spark: SparkSession) -> None:
    """Somebody said that the right side is unique, and it is: the left side's double is told all the same."""
    left = frame(spark, "(1, 'a'), (1, 'a'), (2, 'x') AS t(k, x)")
    found = compared(left, frame(spark, "(1, 'a'), (2, 'x') AS t(k, x)"), "k", unique=True)
    assert counts(found) == {"removed": 1}


def test_rows_that_share_one_key_are_not_joined_with_each_other(spark: SparkSession) -> None:
    """A key that is null everywhere would give 10^10 pairs."""
    left, right = (spark.range(100_000).selectExpr("CAST(NULL AS INT) AS k", f"id + {n} AS x") for n in (0, 1))
    assert counts(compared(left, right, "k")) == {"added": 1, "removed": 1}


def test_values_are_equal_by_what_they_mean(spark: SparkSession) -> None:
    """Zero has no sign, NaN is NaN, null is null, a map has no order; an array has one, and a null has a place."""
    names = "AS t(k, d, m, l, s, t, u, v)"
    inside = "named_struct('x', 1)"
    one = f"""SELECT * FROM VALUES
        (1, 0.0D, map('a', 1, 'b', 2), array(1, null), {inside}, 'a', null, 'b'),
        (2, double('NaN'), null, null, null, 'a', null, 'b'),
        (3, 1.0D, map('a', 1), array(1, 2), {inside}, 'a', 'c', 'b') {names}"""
    other = f"""SELECT * FROM VALUES
        (1, -0.0D, map('b', 2, 'a', 1), array(1, null), {inside}, 'a', null, 'b'),
        (2, -double('NaN'), null, null, null, 'a', 'b', null),
        (3, 1.0D, map('a', 2), array(2, 1), named_struct('x', 2), 'a', 'c', 'b') {names}"""
    found = compared(spark.sql(one), spark.sql(other), "k")
    assert counts(found) == {"changed": 2}
    changed = {each.key["k"]: [cell.column for cell in each.cells] for each in found.samples}
    assert changed == {"2": ["u", "v"], "3": ["m", "l", "s"]}


def test_a_changed_format_is_no_change(spark: SparkSession) -> None:
    """609 rows whose timestamps are spelled otherwise: none changed, 609 in format only."""
    at = "timestamp_seconds(1700000000 + id)"
    old = spark.range(609).selectExpr("id", f"date_format({at}, 'yyyy-MM-dd HH:mm:ss') AS at")
    new = spark.range(609).selectExpr("id", f"replace(date_format({at}, 'yyyy-MM-dd HH:mm:ss'), ' ', 'T') AS at")
    found = compared(old, new, "id")
    assert counts(found) == {"format_only": 609}
    assert found.summary() == "609 in format only"
    assert (found.columns[0].name, found.columns[0].changed, found.columns[0].format_only) == ("at", 0, 609)


SPELLINGS = {
    ("2025-01-01T00:00:00", "2025-01-01 00:00:00"): True,
    ("2025-01-01 00:00:00.000", "2025-01-01T00:00:00Z"): True,
    ("2025-01-01T02:00:00+02:00", "2025-01-01T00:00:00Z"): True,
    ("2025-01-01T02:00:00+02:00", "2025-01-01T02:00:00Z"): False,
    ("1/22/2020 17:00", "2020-01-22T17:00:00"): True,
    ("3/8/20 5:31", "2020-03-08 05:31:00"): True,
    ("1/22/2020 17:00", "2020-01-22T17:00:01"): False,
    ("1.0", "1.00"): True,
    ("1", "1.0"): True,
    ("-1.50", "-1.5"): True,
    ("10", "1"): False,
    ("100.0", "1.0"): False,
    ("007", "7"): False,
    (" a ", "a"): True,
    ("A", "a"): False,
    ("2025-13-45 00:00:00", "2025-13-45T00:00:00"): False,
    ("", "x"): False,
}


def test_spellings_of_one_value_are_told_from_other_values(spark: SparkSession) -> None:
    rows = [(number, *pair) for number, pair in enumerate(SPELLINGS)]
    both = spark.createDataFrame(rows, "k int, l string, r string")
    found = compared(both.selectExpr("k", "l AS x"), both.selectExpr("k", "r AS x"), "k", samples=50)
    states = {int(each.key["k"] or 0): each.change for each in found.samples}
    assert {pair: states[number] == "format_only" for number, pair in enumerate(SPELLINGS)} == SPELLINGS


def test_a_tolerance_is_an_amount_or_a_share(spark: SparkSession) -> None:
    """A number within it is near, not changed; exactly on the edge is within; on text it is not used, and told."""
    left = frame(spark, "(1, 0.29, 100D, 5, 'a'), (2, 0.29, 100D, 5, 'a'), (3, 0.29, 100D, 5, 'a') AS t(k, a, r, n, x)")
    right = frame(
        spark, "(1, 0.30, 101D, 6, 'a'), (2, 0.31, 100D, 5, 'a'), (3, 0.29, 102D, 7, 'a') AS t(k, a, r, n, x)"
    )
    rules = {"a": Tolerance(amount=0.01), "r": Tolerance(amount=0.01, relative=True), "n": Tolerance(amount=1)}
    found = compared(left, right, "k", {"tolerance": {**rules, "x": Tolerance(amount=1)}})
    assert counts(found) == {"changed": 2, "tolerated": 1}
    assert {each.name: (each.changed, each.tolerated) for each in found.columns} == {
        "a": (1, 1),
        "r": (1, 1),
        "n": (1, 1),
    }
    assert found.notes == ("the tolerance of x is not used: it is string, no number",)


@pytest.mark.parametrize(("kind", "least"), [("int", -(2**31)), ("bigint", -(2**63)), ("decimal(38,0)", -(10**37))])
def test_no_number_is_too_great_for_a_tolerance(spark: SparkSession, kind: str, least: int) -> None:
    """The least number of a type has no positive one; the distance of two may not fit either."""
    values = f"(1, CAST('{least}' AS {kind})), (2, CAST('{-least - 1}' AS {kind})) AS t(k, n)"
    left, right = frame(spark, values), frame(spark, values).selectExpr("3 - k AS k", "n")
    zero = frame(spark, values).selectExpr("k", f"CAST(0 AS {kind}) AS n")
    for tolerance in (Tolerance(amount=1e-13), Tolerance(amount=0.5, relative=True)):
        for other in (right, zero):
            assert counts(compared(left, other, "k", {"tolerance": {"n": tolerance}})) == {"changed": 2}
    far = compared(left, zero, "k", {"tolerance": {"n": Tolerance(amount=1e40)}})
    assert counts(far) == {"tolerated": 2}


def test_without_a_key_nothing_is_near(spark: SparkSession) -> None:
    left, right = frame(spark, "(1.0) AS t(x)"), frame(spark, "(1.1) AS t(x)")
    found = compared(left, right, "", {"tolerance": {"x": Tolerance(amount=1)}})
    assert counts(found) == {"added": 1, "removed": 1}
    assert found.notes == ("tolerances are not used: without a key rows cannot be paired",)


ODD = ("backcast_part", "hash", "key_hash", "row", "v0", "s1", "a.b", "a`b", "ünï code", "select", "_change", "before")


def test_columns_may_have_any_name(spark: SparkSession) -> None:
    """Also one that we use ourselves, and be the key."""
    names = ", ".join(f"`{name.replace('`', '``')}`" for name in ODD)
    left = frame(spark, f"({', '.join('1' for _ in ODD)}), ({', '.join('2' for _ in ODD)}) AS t({names})")
    right = frame(spark, f"({', '.join('1' for _ in ODD)}), ({', '.join('2' for _ in ODD[1:])}, 3) AS t({names})")
    for key in (("a.b", "backcast_part"), ("_change",), ()):
        found = SparkComparer().compare(left, right, Comparing(DiffRules(key=key)))
        assert counts(found) == ({"changed": 1} if key else {"added": 1, "removed": 1})
        assert {each.name for each in found.columns if each.moved} == {"before"}
        rows = SparkComparer().changed_rows(left, right, Comparing(DiffRules(key=key)))
        assert rows.count() == (1 if key else 2)


def test_schema_changes_are_explained_and_rows_compared_over_what_is_common(spark: SparkSession) -> None:
    left = spark.sql(
        "SELECT 1 AS k, CAST(1.5 AS DECIMAL(4,1)) AS d, TIMESTAMP_NTZ'2025-01-01 00:00:00' AS at, 'x' AS name,"
        " 7 AS gone, array(1) AS odd, '2025-01-01T00:00:00' AS day, parse_json('1') AS v"
    )
    right = spark.sql(
        "SELECT 1L AS k, CAST(1.50 AS DECIMAL(6,2)) AS d, TIMESTAMP'2025-01-01 00:00:00Z' AS at, 'x' AS title,"
        " true AS came, 'odd' AS odd, TIMESTAMP'2025-01-01 00:00:00Z' AS day, parse_json('1') AS v"
    )
    found = compared(left, right, "k")
    assert counts(found) == {"format_only": 1}
    assert found.columns_changed.sentences() == [
        "name looks renamed to title: same type, same values",
        "column came (boolean) was added",
        "column gone (int) was removed",
        "column k was int and is bigint; compared as bigint",
        "column d was decimal(4,1) and is decimal(6,2); compared as decimal(6,2)",
        "column at was timestamp_ntz and is timestamp; compared as timestamp",
        "column odd was array<int> and is string; its values were not compared",
        "column day was string and is timestamp; compared as string",
        "column v was left out: values of type variant have no order and no digest",
    ]


def test_nested_values_are_compared_over_the_fields_that_both_sides_have(spark: SparkSession) -> None:
    """Fields that came, went, moved or changed their type, in a struct, an array and a map; null stays null."""
    old, new = "named_struct('a', 1, 'b', 'x')", "named_struct('b', 'x', 'c', true, 'a', 1L)"
    other = "named_struct('b', 'y', 'c', true, 'a', 1L)"
    left = frame(spark, f"(1, {old}, array({old}), map('m', {old})), (2, null, null, null) AS t(k, s, l, m)")
    values = f"(1, {new}, array({new}), map('m', {new})), (2, null, null, null) AS t(k, s, l, m)"
    same = compared(left, frame(spark, values), "k")
    assert same.summary() == "no row differs in what was compared"
    assert same.columns_changed.sentences()[0] == (
        "column s was struct<a:int,b:string> and is struct<b:string,c:boolean,a:bigint>;"
        " compared as struct<a:bigint,b:string>"
    )
    found = compared(left, frame(spark, values.replace(new, other)), "k")
    assert counts(found) == {"changed": 1}
    assert [cell.column for cell in found.samples[0].cells] == ["s", "l", "m"]
    assert found.samples[0].cells[0].before == "{1, x}"


def test_masked_columns_are_compared_and_never_shown(spark: SparkSession) -> None:
    left = frame(spark, "('secret-1', 'secret-2', 123456) AS t(k, x, n)")
    right = frame(spark, "('secret-1', 'secret-3', 654321) AS t(k, x, n)")
    found = compared(left, right, "k", {"masked": frozenset({"K", "x", "N"})})
    assert [told(each) for each in found.samples] == [("changed", ("***",), (("x", "***", "***"), ("n", "***", "***")))]
    text = found.model_dump_json()
    assert "secret" not in text
    assert "123456" not in text


DAYS = TimeColumn(column="day", kind=TimeKind.DATE)


def test_only_parts_that_differ_are_compared_row_by_row(spark: SparkSession) -> None:
    left = spark.range(40).selectExpr("id", "date_add(DATE'2026-01-01', CAST(id % 4 AS INT)) AS day", "id * 2 AS x")
    right = left.selectExpr("id", "day", "IF(id = 5, -1, x) AS x").where("id <> 7")
    found = compared(left, right, "id", by_time=(DAYS, Grain.DAY))
    parts = {each.chunk: each.status for each in found.partitions}
    assert parts == {"2026-01-01": "same", "2026-01-02": "changed", "2026-01-03": "same", "2026-01-04": "changed"}
    rows = {each.chunk: each.rows for each in found.partitions if each.rows is not None}
    assert {name: (each.changed, each.removed) for name, each in rows.items()} == {
        "2026-01-02": (1, 0),
        "2026-01-04": (0, 1),
    }
    by_month = compared(left, right, "id", by_time=(DAYS, Grain.MONTH))
    assert [each.chunk for each in by_month.partitions] == ["2026-01"]


def test_a_row_that_moves_to_another_part_is_one_change(spark: SparkSession) -> None:
    """Both parts differ; by key it is a changed row where it is now."""
    left = frame(spark, "(1, DATE'2026-01-01'), (2, DATE'2026-01-02') AS t(id, day)")
    right = frame(spark, "(1, DATE'2026-01-02'), (2, DATE'2026-01-02') AS t(id, day)")
    found = compared(left, right, "id", by_time=(DAYS, Grain.DAY))
    assert counts(found) == {"changed": 1}
    assert [each.status for each in found.partitions] == ["removed", "changed"]


def test_rows_without_a_time_are_a_part_of_their_own(spark: SparkSession) -> None:
    left = frame(spark, "(1, DATE'2026-01-01'), (2, CAST(NULL AS DATE)) AS t(id, day)")
    right = frame(spark, "(1, DATE'2026-01-01'), (3, CAST(NULL AS DATE)) AS t(id, day)")
    for key in ("", "id"):
        found = compared(left, right, key, by_time=(DAYS, Grain.DAY))
        assert {each.chunk: each.status for each in found.partitions} == {"2026-01-01": "same", "null": "changed"}
        assert [(each.change, each.chunk) for each in found.samples] == [("added", "null"), ("removed", "null")]
        rows = SparkComparer().changed_rows(
            left, right, Comparing(DiffRules(key=tuple(key.split())), by_time=(DAYS, Grain.DAY))
        )
        assert sorted((row["_change"], row["_chunk"]) for row in rows.collect()) == [
            ("added", "null"),
            ("removed", "null"),
        ]


def test_parts_are_cut_only_by_a_time_that_both_sides_have(spark: SparkSession) -> None:
    """Dropped, renamed or of another type: rows are compared as one part, and somebody is told."""
    left = frame(spark, "(1, 'a', DATE'2026-01-01'), (2, 'b', DATE'2026-01-02') AS t(k, x, day)")
    right = left.selectExpr("k", "upper(x) AS x", "CAST(day AS TIMESTAMP) AS day")
    for other in (right, right.drop("day"), right.withColumnRenamed("day", "date")):
        for one, two in ((left, other), (other, left)):
            found = compared(one, two, "k", by_time=(DAYS, Grain.DAY))
            assert ([each.chunk for each in found.partitions], counts(found)) == (["all rows"], {"changed": 2})
            assert found.notes == ("not cut by day: it is not date on both sides",)
    assert counts(compared(left, right.drop("day"), by_time=(DAYS, Grain.DAY))) == {"added": 2, "removed": 2}


def test_known_digests_are_not_used_for_columns_in_another_order(spark: SparkSession) -> None:
    """The order of the columns is a part of a digest, and none of what a row means."""
    left = frame(spark, "(1, 'a'), (2, 'b') AS t(k, x)")
    right = left.select("x", "k")
    known = SparkEngine().digests(right, {"all": EVERYTHING})
    assert compared(left, right, "k", parts={"all": EVERYTHING}, known=known).count("same") == 1


def test_without_a_common_column_nothing_crashes(spark: SparkSession) -> None:
    found = compared(spark.sql("SELECT 1 AS a"), spark.sql("SELECT 'x' AS b"), "a")
    assert "both sides have no column in common" in found.notes
    assert "not both sides have a of the key: rows are compared as multisets" in found.notes


def test_the_rows_that_differ_are_a_frame(spark: SparkSession) -> None:
    left = frame(spark, "(1, 'a'), (2, 'b'), (3, 'c'), (5, 'e'), (5, 'e') AS t(k, x)")
    right = frame(spark, "(1, 'a'), (2, 'B'), (4, 'd'), (5, 'e') AS t(k, x)")
    rows = SparkComparer().changed_rows(left, right, Comparing(DiffRules(key=("k",))))
    assert rows.columns == ["_change", "_chunk", "_times", "_columns", "k", "before", "after"]
    found = {(row["_change"], row["k"], row["_times"], tuple(row["_columns"])): row for row in rows.collect()}
    assert set(found) == {
        ("changed", 2, 1, ("x",)),
        ("added", 4, 1, ()),
        ("removed", 3, 1, ()),
        ("removed", 5, 1, ()),
    }
    changed = found["changed", 2, 1, ("x",)]
    assert (changed["before"]["x"], changed["after"]["x"]) == ("b", "B")
    multisets = SparkComparer().changed_rows(left, right, Comparing(DiffRules()))
    assert sorted((row["_change"], row["_times"]) for row in multisets.collect()) == [
        ("added", 1),
        ("added", 1),
        ("removed", 1),
        ("removed", 1),
        ("removed", 1),
    ]
    nothing = SparkComparer().changed_rows(left, left, Comparing(DiffRules(key=("k",))))
    assert nothing.count() == 0
