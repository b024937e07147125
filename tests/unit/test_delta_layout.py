"""What is read out of a Delta log's actions without Spark: partitions and bounds."""

from __future__ import annotations

import json

from backcast.model.column import TimeColumn, TimeKind
from backcast.model.partitions import partition_value
from backcast.model.scope import Predicate, TimeClause
from backcast.spark.delta.bounds import FileBounds
from backcast.spark.delta.layout import Layout


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
