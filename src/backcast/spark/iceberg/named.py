"""Which version of an Iceberg table a person means: a snapshot, a tag, a branch, or a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest, UnknownName
from backcast.model.time import parse_instant
from backcast.spark.gateway import jvm_errors
from backcast.spark.iceberg.handle import MAIN, TableHandle, head_of, ref_of, snapshot_of
from backcast.spark.predicates import to_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from backcast.model.scope import Predicate


def iceberg_version(spark: SparkSession, name: str, text: str) -> str | None:
    """The snapshot; for `head`, None when the table has none yet. Raises UnknownName."""
    with jvm_errors(f"looking for a version of {name}", table=name):
        handle = TableHandle(spark, name)
        table = handle.load()
        if text in ("head", MAIN):
            return head_of(table)
        named = ref_of(table, text)
        if named is not None:
            return named
        if text.isdigit():
            if table.snapshot(int(text)) is not None:
                return text
        elif (at := _moment(text)) is not None:
            # Only what main was at that time: commits on branches are nobody's past.
            line = [(int(each.timestampMillis()), str(each.snapshotId())) for each in handle.items(table.history())]
            before = [snapshot for millis, snapshot in line if millis <= at and table.snapshot(int(snapshot))]
            if before:
                return before[-1]
        names = sorted(str(each) for each in handle.items(table.refs().keySet()))
        hint = f"give a snapshot id, a time after its first commit, head, or one of {', '.join(names[:8])}"
        raise UnknownName(f"{name} has no version {text!r}", hint=hint, version=text)


def rows_at(spark: SparkSession, name: str, version: str | None, predicate: Predicate) -> DataFrame:
    """The matching rows of a snapshot with the columns that the table had then, not those that it has now."""
    with jvm_errors(f"reading {name}", table=name):
        handle = TableHandle(spark, name)
        if version is None:
            return spark.table(handle.quoted).where("false")
        snapshot_of(handle.load(), version)
        frame = spark.sql(f"SELECT * FROM {handle.quoted} VERSION AS OF {int(version)}")
        types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        return frame.where(to_column(predicate, types)) if predicate.clauses else frame


def _moment(text: str) -> int | None:
    try:
        return int(parse_instant(text, "UTC").timestamp() * 1000)
    except InvalidRequest:
        return None
