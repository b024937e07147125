"""How far a stream is behind, from its checkpoint and what brokers say; and the screen that tells it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backcast.cli.render.lag import render_lag
from backcast.errors import InvalidRequest
from backcast.model.lag import PartitionLag, Standing, StreamLag
from backcast.model.log import OffsetRange, PartitionState, TopicFacts
from backcast.model.manifest import Survival
from backcast.sources.kafka.history import Batch, checkpoint_batches
from backcast.sources.kafka.lag import judged, pace_of, places, position_of
from backcast.sources.kafka.record_times import FirstRecord
from tests.unit.cli_screens import shown
from tests.unit.test_kafka_checkpoint import batch as written

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
WEEK_MS = 7 * 86_400_000


def batch(number: int, *ends: int, seconds: int = 0, committed: bool = True) -> Batch:
    begun = NOW - timedelta(hours=1) + timedelta(seconds=seconds)
    return Batch(number, dict(enumerate(ends)), begun, None, committed)


def topic(*states: PartitionState, retention_ms: int | None = WEEK_MS) -> TopicFacts:
    return TopicFacts("orders", "id", states, frozenset({"delete"}), retention_ms, None, "CreateTime")


def lag(facts: TopicFacts, batches: list[Batch], age: timedelta = DAY) -> tuple[PartitionLag, ...]:
    position = position_of(batches, "checkpoint")
    records = {place: FirstRecord(place[1], NOW - age) for place in places(facts, position.batch.ends)}
    return judged(facts, position, records, NOW)


def stream_lag(partitions: tuple[PartitionLag, ...]) -> StreamLag:
    return StreamLag(
        stream="live",
        pipeline="daily",
        source="orders",
        topic="shop.orders",
        topic_id="id",
        checkpoint="checkpoints/live",
        batch=1,
        begun=NOW - timedelta(hours=1),
        planned=None,
        watermark=None,
        pace=None,
        measured_at=NOW,
        partitions=partitions,
    )


def test_the_position_is_that_of_the_newest_committed_batch_and_one_under_way_is_told() -> None:
    position = position_of([batch(3, 5), batch(4, 9), batch(5, 20, committed=False)], "checkpoint")
    assert (position.batch.number, position.planned) == (4, 5)
    with pytest.raises(InvalidRequest, match="has not completed a batch yet"):
        position_of([batch(0, 5, committed=False)], "checkpoint")


def test_the_pace_is_what_the_last_batches_read_and_a_new_partition_does_not_count_as_read_from_nothing() -> None:
    assert pace_of([batch(1, 5)]) is None
    assert pace_of([batch(1, 0, 0), batch(2, 100, 50, seconds=10)]) == 15.0
    assert pace_of([batch(1, 0), batch(2, 50, 1000, seconds=5), batch(3, 100, 1020, seconds=10)]) == 12.0


def test_unread_records_are_counted_and_judged_by_retention_at_the_present_pace() -> None:
    slow, fast = [batch(1, 0), batch(2, 10, seconds=1000)], [batch(1, 0), batch(2, 10, seconds=1)]
    facts = topic(PartitionState(0, 0, 10_000))
    (found,) = lag(facts, fast, age=6 * DAY)
    assert (found.behind, found.lost, found.survival) == (9_990, None, Survival.OK)
    assert found.first_unread == NOW - 6 * DAY
    (found,) = lag(facts, slow, age=6 * DAY)
    assert found.survival is Survival.AT_RISK
    assert lag(topic(PartitionState(0, 0, 50), retention_ms=None), slow)[0].survival is Survival.UNBOUNDED
    (read,) = lag(topic(PartitionState(0, 3, 10)), slow)
    assert (read.behind, read.survival, read.first_unread) == (0, Survival.OK, None)


def test_what_retention_took_before_it_was_read_is_lost() -> None:
    (found,) = lag(topic(PartitionState(0, 15, 30)), [batch(1, 10)])
    assert (found.survival, found.lost, found.behind) == (
        Survival.PARTIAL,
        OffsetRange(partition=0, start=10, end=15),
        15,
    )
    (found,) = lag(topic(PartitionState(0, 30, 30)), [batch(1, 10)])
    assert (found.survival, found.behind) == (Survival.GONE, 0)


def test_partitions_that_only_one_side_knows_and_a_topic_that_was_made_again_are_told() -> None:
    facts = topic(PartitionState(0, 0, 7), PartitionState(1, 0, 40), PartitionState(2, 0, 5))
    position = position_of([Batch(1, {0: 10, 1: 20, 3: 8}, NOW - timedelta(hours=1), None, committed=True)], "c")
    records = {(1, 19): FirstRecord(19, NOW), (1, 20): FirstRecord(20, NOW), (2, 0): FirstRecord(0, NOW)}
    found = judged(facts, position, records, NOW)
    assert [each.standing for each in found] == [Standing.AHEAD, Standing.REMADE, Standing.NEW, Standing.VANISHED]
    assert found[2].behind == 5
    one_of_a_marker = {**records, (1, 19): FirstRecord(20, NOW)}
    assert judged(facts, position, one_of_a_marker, NOW)[1].standing is Standing.KNOWN


def test_batches_are_read_as_spark_writes_them(tmp_path: Path) -> None:
    written(tmp_path, 9, '{"orders":{"0":5}}')
    written(tmp_path, 10, '{"orders":{"0":50}}', committed=False)
    first, second = checkpoint_batches(tmp_path, "orders")
    assert (first.number, first.ends, first.committed, first.watermark) == (9, {0: 5}, True, None)
    assert (second.committed, second.begun) == (False, datetime(2026, 1, 1, tzinfo=UTC))
    file = tmp_path / "offsets" / "10"
    file.write_text(file.read_text().replace('"batchWatermarkMs":0', '"batchWatermarkMs":1767225600000'))
    assert checkpoint_batches(tmp_path, "orders")[1].watermark == datetime(2026, 1, 1, tzinfo=UTC)
    file.write_text('v1\n{}\n{"orders":{"0":50}}')
    with pytest.raises(InvalidRequest, match="offsets/10, line 2: it does not say when the batch began"):
        checkpoint_batches(tmp_path, "orders")


def test_the_screen_says_what_is_lost_and_how_to_take_it_from_an_archive() -> None:
    found = stream_lag(lag(topic(PartitionState(0, 15, 30)), [batch(1, 10)]))
    screen = shown(render_lag(found))
    assert "RECORDS LOST" in screen
    assert "5 offsets gone before they were read: 0=10..15" in screen
    assert "backcast plan daily --offsets 0=10..15" in screen
    assert "backcast stream recover live" in shown(render_lag(found.model_copy(update={"ours": True})))
    assert not found.sound
    assert found.behind_seconds == DAY.total_seconds()


def test_an_unread_record_that_waits_longer_than_asked_is_told() -> None:
    waiting = lag(topic(PartitionState(0, 0, 30)), [batch(1, 10)], age=timedelta(minutes=100))
    read = lag(topic(PartitionState(0, 0, 10)), [batch(1, 10)], age=timedelta(minutes=100))
    found, nothing = stream_lag(waiting), stream_lag(read)
    assert [each.waits_longer(60 * 60) for each in (found, nothing)] == [True, False]
    assert [found.waits_longer(each) for each in (100 * 60, None)] == [False, False]
    screen = shown(render_lag(found, 60 * 60))
    assert "live  TOO LATE  20 records behind" in screen
    assert "the oldest unread record has been waiting for 1 h 40 min, longer than 1 h" in screen
    assert "live  OK  20 records behind" in shown(render_lag(found, 120 * 60))
