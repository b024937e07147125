"""What is read out of a Delta log's actions without Spark: partitions, bounds and paths."""

from __future__ import annotations

import json

import pytest

from backcast.model.column import TimeColumn, TimeKind
from backcast.model.partitions import partition_value
from backcast.model.scope import Predicate, TimeClause
from backcast.spark.delta.bounds import FileBounds
from backcast.spark.delta.layout import Layout
from backcast.spark.delta.paths import TableRoot, canonical


def layout(day: str = "string") -> Layout:
    types = {"shop": "string", "day": day}
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in types.items()]
    schema = json.dumps({"type": "struct", "fields": fields})
    return Layout({"schemaString": schema, "partitionColumns": ["shop", "day"]}, {})


def test_a_partition_value_comes_back_as_it_was_whatever_signs_it_holds() -> None:
    path = layout().partition_path({"shop": "a/day=1999/01/01", "day": "2026/01/31"})
    assert partition_value(path, "shop") == "a/day=1999/01/01"
    assert partition_value(path, "day") == "2026/01/31"


def test_null_and_empty_partition_values_are_null() -> None:
    assert partition_value(layout().partition_path({"shop": "x", "day": None}), "day") is None
    assert partition_value(layout().partition_path({"shop": "x", "day": ""}), "day") is None
    time = TimeColumn(column="day", kind=TimeKind.DATE)
    bounds = FileBounds(
        layout("date"), Predicate(clauses=(TimeClause(time=time, ranges=(("2026-01-01", "2026-02-01"),)),))
    )
    assert not bounds.may_hold_any({"partitionValues": {"shop": "x", "day": ""}})
    assert not bounds.holds_all({"partitionValues": {"shop": "x", "day": ""}})
    assert bounds.holds_all({"partitionValues": {"shop": "x", "day": "2026-01-31"}})


def january(low: str, high: str) -> tuple[FileBounds, dict[str, str]]:
    """January of a timestamp column, and a file with these statistics."""
    time = TimeColumn(column="at", kind=TimeKind.TIMESTAMP)
    fields = [{"name": "at", "type": "timestamp", "nullable": True, "metadata": {}}]
    flat = Layout({"schemaString": json.dumps({"type": "struct", "fields": fields}), "partitionColumns": []}, {})
    scope = Predicate(clauses=(TimeClause(time=time, ranges=(("2026-01-01T00:00:00", "2026-02-01T00:00:00"),)),))
    stats = {"minValues": {"at": low}, "maxValues": {"at": high}, "nullCount": {"at": 0}}
    return FileBounds(flat, scope), {"stats": json.dumps(stats)}


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ("2026-01-05T00:00:00.000Z", "+10000-01-01T07:59:59.000Z"),
        ("2026-01-05T00:00:00.000Z", "9999-12-31T23:59:59.000-08:00"),
        ("0001-01-01T00:00:00.000+01:00", "2026-01-05T00:00:00.000Z"),
    ],
)
def test_statistics_beyond_the_calendar_prove_nothing(low: str, high: str) -> None:
    """Sentinels such as 9999-12-31, written in a zone where it is already the next year."""
    bounds, action = january(low, high)
    assert bounds.may_hold_any(action)
    assert not bounds.holds_all(action)


def test_the_last_moment_of_the_calendar_is_a_bound_like_others() -> None:
    """Some writers keep microseconds: nothing can be added to these."""
    last = "9999-12-31T23:59:59.999999Z"
    bounds, action = january(last, last)
    assert not bounds.may_hold_any(action)


@pytest.mark.parametrize(
    ("raw", "spelled"),
    [
        ("day=1/p.parquet", "file:/a b%/t/day=1/p.parquet"),
        ("d=a%2520b/p.parquet", "file:/a b%/t/d=a%20b/p.parquet"),
        ("/a%20b%25/t/p.parquet", "file:/a b%/t/p.parquet"),
        ("file:///a%20b%25/t/p.parquet", "file:/a b%/t/p.parquet"),
        ("file:/a%20b%25/t/p.parquet", "file:/a b%/t/p.parquet"),
        ("s3a://bucket/t/p.parquet", "s3a://bucket/t/p.parquet"),
    ],
)
def test_paths_are_compared_as_qualified_decoded_uris(raw: str, spelled: str) -> None:
    assert TableRoot("file:/a%20b%25/t").canonical(raw) == spelled


def test_a_root_on_another_scheme_qualifies_with_it() -> None:
    root = TableRoot("s3a://bucket/t")
    assert root.canonical("/x/p.parquet") == "s3a://bucket/x/p.parquet"
    assert root.below("_backcast").canonical("p.parquet") == canonical("s3a://bucket/t/_backcast/p.parquet")
