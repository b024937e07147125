"""Why records are not in a table, told by which batch read them and by the watermark of that time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backcast.model.late import Closing, Lateness, ReadHistory
from backcast.spark.by_time import wall

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from backcast.model.column import TimeColumn
    from backcast.model.time import Grain

ORDER = (Lateness.LATE, Lateness.UNKNOWN, Lateness.PENDING, Lateness.MISSING)
"""A row with several records is explained by the first of these that one of them is."""


def lateness(partition: Column, offset: Column, event: Column, history: ReadHistory) -> Column:
    """The place in ORDER of what became of a record. `event` is when it closes, in microseconds: see `closes`."""
    if not history.ends:
        return F.lit(ORDER.index(Lateness.PENDING))
    ends = F.expr(f"map({', '.join(f'{number}, array({_longs(each)})' for number, each in history.ends.items())})")
    marks = F.expr(f"array({', '.join(map(_mark, history.marks))})")
    known = F.try_element_at(ends, partition.cast("int"))
    batch = F.size(F.filter(known, lambda end: end <= offset))
    late = event <= F.get(marks, batch)
    code = {each: F.lit(number) for number, each in enumerate(ORDER)}
    first = F.lit(not history.from_start) & (batch == 0)
    return (
        F.when(known.isNull() | (batch >= len(history.marks)), code[Lateness.PENDING])
        .when(late & first, code[Lateness.UNKNOWN])
        .when(late, code[Lateness.LATE])
        .otherwise(code[Lateness.MISSING])
    )


def closes(closing: Closing, event: Column) -> Column:
    """When a record of that event time is closed, both in microseconds."""
    if not closing.every:
        return event
    rest = F.lit(closing.first) - F.pmod(event - F.lit(closing.origin), F.lit(closing.every))
    # Windows whose distance is no part of their length: the first of them may have ended before the record.
    return event + rest + F.when(rest <= 0, F.lit(closing.every)).otherwise(F.lit(0))


def counted(records: DataFrame, code: str, column: TimeColumn, grain: Grain) -> dict[datetime, dict[Lateness, int]]:
    """Records by the wall clock time at which their piece of time starts, and by what became of them; one job."""
    piece = F.date_trunc(grain.value, wall(column)).cast("string").alias("piece")
    found: dict[datetime, dict[Lateness, int]] = {}
    for row in records.groupBy(piece, F.col(code).alias("code")).count().collect():
        if row["piece"] is not None:
            found.setdefault(datetime.fromisoformat(row["piece"]), {})[ORDER[row["code"]]] = row["count"]
    return found


def _longs(values: tuple[int, ...]) -> str:
    return ", ".join(f"{each}L" for each in values)


def _mark(value: int | None) -> str:
    return "CAST(NULL AS BIGINT)" if value is None else f"{value}L"
