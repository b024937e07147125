"""In which order a replay gets its records, and when a live query has no use for one any more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from backcast.spark.lateness import closes
from backcast.spark.streaming_plan import closing
from backcast.streams.ordering import part_records, sort_records

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FIRST = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def shuffled(spark: SparkSession) -> DataFrame:
    """A record a minute in no order, every tenth of them three times, and one without a time."""
    minutes = [(number * 37) % 240 for number in range(240)]
    times = [_FIRST + timedelta(minutes=each) for each in [*minutes, *minutes[::10], *minutes[::10]]]
    return spark.createDataFrame([(each,) for each in [*times, None]], "at TIMESTAMP").repartition(3)


def batches(spark: SparkSession, folder: Path) -> list[list[int]]:
    """Minutes of the records of each file, in the order in which Spark's file source takes them."""
    files = sorted(folder.iterdir(), key=lambda each: each.stat().st_mtime)
    assert [each.name for each in files] == sorted(each.name for each in files)
    start = int(_FIRST.timestamp())
    read = [spark.read.parquet(str(each)).select(F.unix_seconds("at").alias("at")).collect() for each in files]
    return [[-1 if row["at"] is None else (row["at"] - start) // 60 for row in rows] for rows in read]


def test_sorted_records_follow_one_another_and_no_moment_is_parted(
    spark: SparkSession, shuffled: DataFrame, tmp_path: Path
) -> None:
    sort_records(shuffled, "at", shuffled.count(), 50, tmp_path / "records")
    found = batches(spark, tmp_path / "records")
    assert len(found) == 6
    assert [minute for each in found for minute in each] == sorted(minute for each in found for minute in each)
    edges = [(before[-1], after[0]) for before, after in pairwise(found)]
    assert all(last < first for last, first in edges), "equal times share a file: behind it they would be late"
    assert sum(map(len, found)) == shuffled.count()


def test_records_of_a_chunk_share_a_file_and_come_before_those_of_the_next(
    spark: SparkSession, shuffled: DataFrame, tmp_path: Path
) -> None:
    hours = [_FIRST + timedelta(hours=each) for each in (1, 2, 3)]
    part_records(shuffled, "at", [*hours, hours[1]], tmp_path / "records")
    found = batches(spark, tmp_path / "records")
    assert [(min(each), max(each)) for each in found] == [(-1, 59), (60, 119), (120, 179), (180, 239)]
    assert sum(map(len, found)) == shuffled.count()


def test_nothing_to_order_is_no_file(spark: SparkSession, shuffled: DataFrame, tmp_path: Path) -> None:
    part_records(shuffled.where("false"), "at", [_FIRST], tmp_path / "parts")
    sort_records(shuffled.where("false"), "at", 0, 50, tmp_path / "sorted")
    assert [row for each in ("parts", "sorted") for row in batches(spark, tmp_path / each) if row] == []


@pytest.mark.parametrize(
    "window", [("1 hour",), ("1 hour", "15 minutes", "5 minutes"), ("1 hour", "25 minutes")], ids=" ".join
)
def test_a_record_is_closed_with_the_first_window_that_it_is_in(
    spark: SparkSession, shuffled: DataFrame, window: tuple[str, ...]
) -> None:
    stream = spark.readStream.format("rate").load().withWatermark("timestamp", "10 minutes")
    found = closing(stream.groupBy(F.window("timestamp", *window)).count())
    assert found is not None
    times = shuffled.where("at IS NOT NULL").distinct()
    first = times.select("at", F.window("at", *window).alias("w")).groupBy("at").agg(F.min("w.end").alias("end"))
    wrong = first.where(closes(found, F.unix_micros("at")) != F.unix_micros("end"))
    assert wrong.count() == 0


def test_what_drops_by_event_time_and_what_drops_nothing(spark: SparkSession) -> None:
    stream = spark.readStream.format("rate").load().withWatermark("timestamp", "10 minutes")
    hourly = F.window("timestamp", "1 hour")
    assert closing(stream.where("value > 1")) is None, "without a memory nothing is late"
    by_event = [
        stream.dropDuplicatesWithinWatermark(["value"]).groupBy(hourly).count(),
        stream.union(stream).groupBy(hourly).count(),
        stream.groupBy("timestamp").count(),
    ]
    assert [found and found.every for found in map(closing, by_event)] == [0, 0, 0]
