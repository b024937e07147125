"""Questions to an archive: which offsets it has, where a moment lies, whether something is missing. Small jobs each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from backcast.model.log import OffsetRange, Ranges
from backcast.sources.kafka.archive import within
from backcast.sources.kafka.record_times import instant_of
from backcast.spark.gateway import jvm_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ArchivedPart:
    """What an archive has of one range."""

    records: int
    first_time: datetime | None
    """Record time of the first of them."""


def extents(records: DataFrame) -> tuple[dict[int, OffsetRange], dict[int, int]]:
    """From the first to the last offset of each partition, whatever is missing between; and how many records it has."""
    ends = [F.min("offset").alias("low"), F.max("offset").alias("high"), F.count("*").alias("records")]
    with jvm_errors("looking into the archive"):
        found = records.groupBy("partition").agg(*ends).collect()
    held = {
        row["partition"]: OffsetRange(partition=row["partition"], start=row["low"], end=row["high"] + 1)
        for row in found
    }
    return held, {row["partition"]: row["records"] for row in found}


def first_offsets(
    records: DataFrame, below: Mapping[int, int], instants: Iterable[datetime]
) -> dict[datetime, dict[int, int]]:
    """For each instant the first offset, of those below the given ones, whose record is not earlier. Without those
    partitions that have none.
    """
    wanted = sorted(set(instants))
    if not wanted or not below:
        return {each: {} for each in wanted}
    before = within(tuple(OffsetRange(partition=each, start=0, end=end) for each, end in below.items()))
    moments = ", ".join(f"{_micros(each)}L" for each in wanted)
    passed = F.expr(f"size(filter(array({moments}), each -> each <= unix_micros(timestamp)))")
    with jvm_errors("looking up times in the archive"):
        found = (
            records.where(before)
            .select("partition", "offset", passed.alias("passed"))
            .groupBy("partition", "passed")
            .agg(F.min("offset").alias("first"))
            .collect()
        )
    answers: dict[datetime, dict[int, int]] = {each: {} for each in wanted}
    for row in found:
        for instant in wanted[: row["passed"]]:
            known = answers[instant]
            known[row["partition"]] = min(row["first"], known.get(row["partition"], row["first"]))
    return answers


def last_offsets(records: DataFrame, offsets: Mapping[int, int]) -> dict[int, int]:
    """The last offset, up to the given one, of each partition that has one."""
    before = tuple(OffsetRange(partition=each, start=0, end=offset + 1) for each, offset in offsets.items())
    with jvm_errors("looking into the archive"):
        found = records.where(within(before)).groupBy("partition").agg(F.max("offset").alias("last")).collect()
    return {row["partition"]: row["last"] for row in found}


def parts(records: DataFrame, ranges: Ranges) -> dict[int, ArchivedPart]:
    """How many records of each range there are. Of an empty one only the record at its start is looked at."""
    looked_at = tuple(
        OffsetRange(partition=each.partition, start=each.start, end=max(each.end, each.start + 1)) for each in ranges
    )
    with jvm_errors("looking into the archive"):
        found = (
            records.where(within(looked_at))
            .groupBy("partition")
            .agg(F.count("*").alias("records"), F.expr("unix_micros(min_by(timestamp, offset))").alias("first"))
            .collect()
        )
    return {row["partition"]: ArchivedPart(row["records"], _instant(row["first"])) for row in found}


def first_holes(records: DataFrame, ranges: Ranges) -> Ranges:
    """Of each range from the first offset that is missing to its end."""
    starts = " ".join(f"WHEN {each.partition} THEN {each.start - 1}L" for each in ranges)
    ends = {each.partition: each.end for each in ranges}
    before = F.lag("offset").over(Window.partitionBy("partition").orderBy("offset"))
    with jvm_errors("looking for holes in the archive"):
        found = (
            records.where(within(ranges))
            .select("partition", "offset", F.coalesce(before, F.expr(f"CASE partition {starts} END")).alias("before"))
            .groupBy("partition")
            .agg(F.expr("min(if(offset > before + 1, before + 1, NULL))").alias("gap"), F.max("offset").alias("last"))
            .collect()
        )
    gaps = {row["partition"]: row["last"] + 1 if row["gap"] is None else row["gap"] for row in found}
    return tuple(
        OffsetRange(partition=each.partition, start=gaps.get(each.partition, each.start), end=ends[each.partition])
        for each in ranges
        if each.span and gaps.get(each.partition, each.start) < each.end
    )


def islands(records: DataFrame, ranges: Ranges) -> Ranges:
    """What is there of the ranges, as pieces without holes; a partition may have several."""
    number = F.row_number().over(Window.partitionBy("partition").orderBy("offset"))
    with jvm_errors("looking for holes in the archive"):
        found = (
            records.where(within(ranges))
            .select("partition", "offset")
            .distinct()
            .select("partition", "offset", (F.col("offset") - number).alias("island"))
            .groupBy("partition", "island")
            .agg(F.min("offset").alias("low"), F.max("offset").alias("high"))
            .orderBy("partition", "low")
            .collect()
        )
    return tuple(OffsetRange(partition=row["partition"], start=row["low"], end=row["high"] + 1) for row in found)


def _micros(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(microseconds=1)


def _instant(micros: int | None) -> datetime | None:
    return None if micros is None else instant_of(micros // 1000)
