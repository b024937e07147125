"""Which offsets hold a window of event time, and how disordered they are: counted by Spark, in two narrow passes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest
from backcast.model.column import TimeColumn, TimeKind
from backcast.model.coverage import Status
from backcast.model.log import Ranges
from backcast.model.scope import during
from backcast.model.topic_report import PartitionSurvey
from backcast.spark.predicates import quote, to_column, type_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from backcast.model.source import KafkaAccess, LogSource
    from backcast.model.time import Interval

_BLOCK = 100_000
"""Offsets that are put in order by one task."""


@dataclass(frozen=True, slots=True)
class Block:
    """Neighbouring records of a partition: earliest and latest time in them, and how far one lies behind another."""

    first: int
    last: int
    backward: int


def survey(
    spark: SparkSession, access: KafkaAccess, source: LogSource, ranges: Ranges, window: Interval
) -> tuple[PartitionSurvey, ...]:
    """One answer for each range. Raises InvalidRequest for a source without event time."""
    from backcast.sources.kafka.read import read_log

    if source.time is None:
        hint = f"add `time` to sources.{source.name}, or look by record time: backcast kafka offsets"
        raise InvalidRequest(f"source {source.name!r} has no event time", hint=hint)
    time = source.time

    def seen(part: Ranges) -> DataFrame:
        return _seen(read_log(spark, access, source, part), time, window)

    found = {each.partition: each for each in _found(seen(ranges), ranges)}
    held = tuple(each.held for each in found.values() if each.held is not None)
    if held:
        found |= {each.partition: each for each in _ordered(seen(held), found)}
    return tuple(found[each.partition] for each in ranges)


def backward(blocks: Iterable[Block]) -> int:
    """The most by which a time lies behind an earlier one, over blocks in order."""
    most, newest = 0, None
    for block in blocks:
        behind = 0 if newest is None else newest - block.first
        most = max(most, block.backward, behind)
        newest = block.last if newest is None else max(newest, block.last)
    return most


def _seen(rows: DataFrame, time: TimeColumn, window: Interval) -> DataFrame:
    """Per record: partition, offset, whether it is in the window, its event time in microseconds, decoded or not."""
    from pyspark.sql import functions as F

    types = dict(rows.dtypes)
    matches = F.coalesce(to_column(during((time,), (window,)), types), F.lit(False))
    from backcast.model.quarantine import POSITION
    from backcast.sources.kafka.decode import STATUS

    decoded = F.col(STATUS) == Status.ROW.value
    return rows.select(
        F.col(f"{POSITION}.partition").alias("partition"),
        F.col(f"{POSITION}.offset").alias("offset"),
        (decoded & matches).alias("matches"),
        (F.col(STATUS) == Status.QUARANTINED.value).alias("unreadable"),
        F.when(decoded, micros(time, type_of(time.column, types))).alias("time"),
    )


def micros(time: TimeColumn, type_name: str) -> Column:
    """The column as microseconds, good for differences: wall clock times are taken as they are."""
    from pyspark.sql import functions as F

    column = F.col(quote(time.column))
    if time.epoch_scale is not None:
        return column.cast("bigint") * (1_000_000 // time.epoch_scale)
    match time.kind:
        case TimeKind.TIMESTAMP:
            return F.unix_micros(column)
        case TimeKind.DATE:
            return F.unix_date(column).cast("bigint") * 86_400_000_000
        case TimeKind.TIMESTAMP_NTZ:
            return F.unix_micros(column.cast("timestamp"))
        case TimeKind.STRING | TimeKind.INTEGER:
            text = column if type_name == "string" else column.cast("string")
            return F.unix_micros(F.try_to_timestamp(text, F.lit(time.format)))


def _found(seen: DataFrame, ranges: Ranges) -> list[PartitionSurvey]:
    from pyspark.sql import functions as F

    here = F.when(F.col("matches"), F.col("offset"))
    rows = seen.groupBy("partition").agg(
        F.min(here).alias("first"),
        F.max(here).alias("last"),
        F.sum(F.col("matches").cast("bigint")).alias("matching"),
        F.sum(F.col("unreadable").cast("bigint")).alias("unreadable"),
    )
    known = {row["partition"]: row.asDict() for row in rows.collect()}
    return [
        PartitionSurvey(scanned=each, **known.get(each.partition, {"partition": each.partition})) for each in ranges
    ]


def _ordered(seen: DataFrame, found: dict[int, PartitionSurvey]) -> list[PartitionSurvey]:
    """The same, with what lies between first and last: how many others, and how far times run backwards."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    block = F.floor(F.col("offset") / _BLOCK)
    so_far = Window.partitionBy("partition", "block").orderBy("offset").rowsBetween(Window.unboundedPreceding, 0)
    behind = F.max("time").over(so_far) - F.col("time")
    rows = (
        seen.withColumn("block", block)
        .withColumn("behind", behind)
        .groupBy("partition", "block")
        .agg(
            F.count(F.lit(1)).alias("records"),
            F.min("time").alias("first"),
            F.max("time").alias("last"),
            F.max("behind").alias("backward"),
        )
        .orderBy("partition", "block")
        .collect()
    )
    answers = []
    for number in dict.fromkeys(row["partition"] for row in rows):
        mine = [row for row in rows if row["partition"] == number]
        timed = [Block(row["first"], row["last"], row["backward"]) for row in mine if row["first"] is not None]
        survey_ = found[number]
        foreign = sum(row["records"] for row in mine) - survey_.matching
        answers.append(survey_.model_copy(update={"foreign": foreign, "backward_seconds": backward(timed) / 1_000_000}))
    return answers
