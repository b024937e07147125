"""A pinned part of a topic becomes rows, and every offset of it is accounted for. On a real broker."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from backcast.model.coverage import GapPolicy, PartitionCoverage
from backcast.model.log import Isolation, OffsetRange
from backcast.model.source import LogSource
from backcast.sources.kafka.coverage import observed_log, scan_coverage
from backcast.sources.kafka.read import read_log
from backcast.testing.kafka_records import Record
from tests.spark.kafka_kit import RAW, access, all_of, json_source, proven, replay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.testing.kafka import KafkaBroker

_DAY = 86_400_000
_NOON = 1_767_268_800_000  # 2026-01-01T12:00:00Z


def _order(number: int, at: str = "2026-01-01T12:00:00Z") -> str:
    return json.dumps({"id": number, "at": at})


def test_records_come_with_status_and_position_and_no_group_is_touched(
    spark: SparkSession, broker: KafkaBroker
) -> None:
    """Rows, rows out of the window, tombstones and broken records of out-of-order partitions; one range is empty."""
    topic = broker.create_topic("read-orders", 4)
    broker.produce(
        topic,
        [
            Record(_order(1), "k1", _NOON, 0, (("source", b"web"), ("empty", None))),
            Record(_order(2), "k2", _NOON - _DAY, 0),
            Record(None, "k1", _NOON + 5, 0),
            Record("{broken", "k3", _NOON + 1, 0),
            Record(_order(3, "2025-12-31T23:59:59.999999Z"), None, _NOON, 1),
            Record(_order(4), None, _NOON, 1),
            Record(_order(5), None, _NOON, 1),
        ],
    )
    source = json_source(topic, "id BIGINT, at TIMESTAMP")
    first, second, idle, _ = all_of(broker, topic)
    ranges = (first, second.model_copy(update={"end": 2}), idle)
    window = F.col("at") >= F.lit(datetime(2026, 1, 1, tzinfo=UTC))
    before = broker.groups()

    rows, covered = replay(spark, broker, source, ranges, window)

    assert [row["_status"] for row in rows] == ["row", "row", "tombstone", "quarantined", "filtered", "row"]
    assert [row["id"] for row in rows] == [1, 2, None, None, 3, 4]
    assert [row["_problem"] for row in rows] == [None] * 3 + ["the value is not one JSON object"] + [None] * 2
    position = rows[0]["_kafka"]
    assert (position["topic"], position["partition"], position["offset"], position["timestamp_type"]) == (
        topic,
        0,
        0,
        0,
    )
    assert position["timestamp"].timestamp() * 1000 == _NOON
    assert (bytes(position["key"]), bytes(position["value"])) == (b"k1", _order(1).encode())
    assert [(each["key"], each["value"]) for each in position["headers"]] == [
        ("source", bytearray(b"web")),
        ("empty", None),
    ]
    assert rows[1]["_kafka"]["headers"] is None
    assert covered.complete
    assert covered.partitions == (
        PartitionCoverage(partition=0, start=0, end=4, rows=2, tombstones=1, quarantined=1),
        PartitionCoverage(partition=1, start=0, end=2, rows=1, filtered=1),
    )
    assert broker.groups() == before


def test_no_offsets_at_all_give_an_empty_frame_of_the_same_columns(spark: SparkSession, broker: KafkaBroker) -> None:
    source = json_source("read-orders-nobody-made", "id BIGINT, price DECIMAL(10,2)")
    empty = (OffsetRange(partition=0, start=7, end=7),)
    rows, covered = replay(spark, broker, source, empty)
    assert (rows, covered.partitions, covered.complete) == ([], (), True)
    frame = read_log(spark, access(broker), source, empty)
    there = (OffsetRange(partition=0, start=0, end=1),)
    assert frame.schema.fieldNames() == ["id", "price", "_kafka", "_problem", "_status"]
    assert frame.schema.simpleString() == read_log(spark, access(broker), source, there).schema.simpleString()


def test_64_partitions_with_691_records_twice(spark: SparkSession, broker: KafkaBroker) -> None:
    """Records that producers wrote twice are two records; the sketch keeps many partitions apart."""
    topic = broker.create_topic("read-many", 64)
    sent = [Record(_order(number), timestamp=_NOON, partition=number % 64) for number in range(1382)]
    again = [Record(_order(number), timestamp=_NOON, partition=number % 64) for number in range(691)]
    bad = [Record("[]", timestamp=_NOON, partition=number) for number in range(0, 64, 3)]
    broker.produce(topic, [*sent, *again, *bad])
    ranges = all_of(broker, topic)
    source = json_source(topic, "id BIGINT, at TIMESTAMP")
    frame = read_log(spark, access(broker), source, ranges)
    counted, read = observed_log(frame, ranges, F.col("id") % 64 != 5)
    totals = counted.where("_status = 'row'").agg(F.count("*"), F.countDistinct("id")).collect()[0]
    covered = proven(spark, ranges, read())
    assert covered is not None
    assert tuple(totals) == (2073 - 33, 1382 - 22)
    assert (covered.complete, covered.rows, covered.filtered, covered.quarantined) == (True, 2040, 33, 22)
    assert [each.quarantined for each in covered.partitions] == [int(number % 3 == 0) for number in range(64)]


@pytest.mark.parametrize("declared", [True, False])
def test_transactions_under_both_isolation_levels(spark: SparkSession, broker: KafkaBroker, *, declared: bool) -> None:
    """Markers and aborted records leave gaps. Aborted records show by themselves that there are transactions; where
    they are visible, somebody must have declared transactions for their markers to be explained.
    """
    topic = broker.create_topic(f"read-transactions-{declared}".lower())
    broker.transaction(topic, [Record(f"{number}", timestamp=_NOON) for number in range(10)])
    broker.transaction(topic, [Record("aborted", timestamp=_NOON)] * 6, commit=False)
    broker.transaction(topic, [Record(f"{number}", timestamp=_NOON) for number in range(10, 14)])
    source = LogSource(name="t", topic=topic, value=RAW, transactional=declared)
    with broker.open_transaction(topic, [Record("open", timestamp=_NOON)] * 3):
        rows, covered = replay(spark, broker, source, all_of(broker, topic, committed=True))
        open_source = replace(source, isolation=Isolation.UNCOMMITTED)
        every, uncommitted = replay(spark, broker, open_source, all_of(broker, topic))
    assert sorted(int(row["value"]) for row in rows) == list(range(14))
    assert covered.complete
    assert covered.partitions == (PartitionCoverage(partition=0, start=0, end=23, rows=14, aborted=6, markers=3),)
    assert len(every) == 23
    whole = {"partition": 0, "start": 0, "end": 26, "rows": 23}
    if declared:
        assert uncommitted.partitions == (PartitionCoverage(**whole, markers=3),)
    else:
        assert uncommitted.partitions == (PartitionCoverage(**whole, unexplained=3, first_unexplained=10),)
        assert not uncommitted.complete


def test_compaction_explains_gaps_only_where_the_topic_is_compacted(spark: SparkSession, broker: KafkaBroker) -> None:
    topic = broker.create_topic("read-compacted", cleanup_policy="compact")
    broker.produce(topic, [Record(_order(number), f"k{number % 3}", _NOON) for number in range(30)])
    pinned = all_of(broker, topic)
    broker.compact(topic)
    source = json_source(topic, "id BIGINT, at TIMESTAMP")
    rows, covered = replay(spark, broker, source, pinned, cleanup=frozenset({"compact"}))
    assert [row["id"] for row in rows] == [27, 28, 29]
    assert covered.complete
    assert covered.partitions == (PartitionCoverage(partition=0, start=0, end=30, rows=3, compacted=27),)
    _, holes = replay(spark, broker, source, pinned)
    assert not holes.complete
    assert (holes.partitions[0].unexplained, holes.partitions[0].first_unexplained) == (27, 0)
    assert "no record at 27 offsets, the first is 0" in holes.problems[0]


def test_what_a_job_counted_twice_is_decided_by_a_scan_and_overlaps_are_told(
    spark: SparkSession, broker: KafkaBroker
) -> None:
    """A task may run twice, a part of the input may be there twice: the count says so, and a scan tells where."""
    topic = broker.create_topic("read-twice", 2)
    broker.produce(topic, [Record(_order(number), timestamp=_NOON, partition=number % 2) for number in range(10)])
    ranges = all_of(broker, topic)
    source = json_source(topic, "id BIGINT, at TIMESTAMP")
    frame = read_log(spark, access(broker), source, ranges)
    counted, read = observed_log(frame.unionAll(frame), ranges)
    assert counted.count() == 20
    assert proven(spark, ranges, read()) is None
    policy = GapPolicy(compacted=False, transactional=False, isolation=Isolation.UNCOMMITTED)
    covered = scan_coverage(frame, ranges, policy)
    assert (covered.complete, covered.rows) == (True, 10)

    broken = frame.where("_kafka.offset <> 3").unionAll(frame.where("_kafka.offset = 1 AND _kafka.partition = 0"))
    found = scan_coverage(broken, ranges, policy).partitions
    assert [(each.rows, each.doubled, each.unexplained, each.first_unexplained) for each in found] == [
        (4, 1, 1, 3),
        (4, 0, 1, 3),
    ]


def test_the_frame_reads_the_same_when_records_arrive_and_pays_only_for_what_is_used(
    spark: SparkSession, broker: KafkaBroker
) -> None:
    topic = broker.create_topic("read-later")
    broker.produce(topic, [Record(_order(1), timestamp=_NOON, headers=(("h", b"v"),))])
    ranges = all_of(broker, topic)
    frame = read_log(spark, access(broker), json_source(topic, "id BIGINT, at TIMESTAMP"), ranges)
    counted, _ = observed_log(frame, ranges)
    used = counted.where("_status = 'row'").selectExpr("id", "_kafka.offset AS offset")
    broker.produce(topic, [Record(_order(2), timestamp=_NOON)])
    assert [tuple(row) for row in used.collect()] == [(1, 0)]
    plan = used._jdf.queryExecution().optimizedPlan().toString()
    below = plan[plan.index("CollectMetrics") :].splitlines()[1]
    assert "headers" not in below
    assert "topic" not in below
