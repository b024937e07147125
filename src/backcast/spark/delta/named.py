"""Which version of a Delta table a person means: its number, or a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest, UnknownName
from backcast.model.time import parse_instant
from backcast.spark.delta.handle import DeltaHandle
from backcast.spark.gateway import jvm_errors

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import SparkSession


def delta_version(spark: SparkSession, name: str, text: str) -> str | None:
    """The version. Raises UnknownName."""
    with jvm_errors(f"looking for a version of {name}", table=name):
        handle = DeltaHandle(spark, name)
        head = handle.at()
        if text == "head":
            return head.name
        if text.isdigit():
            if int(text) <= head.number:
                return handle.at(text).name
        elif (at := _moment(text)) is not None:
            found = _as_of(spark, handle, at)
            if found is not None:
                return found
        hint = f"give a number up to {head.number}, a time after its first commit, or head"
        raise UnknownName(f"{name} has no version {text!r}", hint=hint, version=text)


def _as_of(spark: SparkSession, handle: DeltaHandle, at: datetime) -> str | None:
    from pyspark.sql import functions as F

    history = spark.sql(f"DESCRIBE HISTORY delta.`{handle.root.path}`")
    newest = history.where(F.col("timestamp") <= F.lit(at)).agg(F.max("version")).collect()[0][0]
    return None if newest is None else str(newest)


def _moment(text: str) -> datetime | None:
    try:
        return parse_instant(text, "UTC")
    except InvalidRequest:
        return None
