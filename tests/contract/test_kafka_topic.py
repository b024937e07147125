"""The control plane's questions about a topic, asked of a real broker."""

from __future__ import annotations

import itertools
import time
from datetime import UTC, datetime, timedelta

import pytest

from backcast.errors import Unavailable, UnknownName
from backcast.model.log import Isolation, OffsetRange, PartitionState
from backcast.model.manifest import Survival
from backcast.model.source import Encoding, KafkaAccess, Layout, LogSource
from backcast.model.time import Interval
from backcast.sources.kafka.look import offsets_at
from backcast.sources.kafka.ranges import event_ranges
from backcast.sources.kafka.retention import partition_survival
from backcast.sources.kafka.topic import KafkaTopic
from backcast.testing.kafka import KafkaBroker
from backcast.testing.kafka_records import Record
from backcast.testing.servers import free_port

START = datetime(2026, 1, 1, tzinfo=UTC)
_names = (f"looked-at-{number}" for number in itertools.count(1))


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def record(seconds: float, partition: int = 0, value: str | None = "{}") -> Record:
    return Record(value, f"key-{seconds}", int(at(seconds).timestamp() * 1000), partition)


def made(broker: KafkaBroker, name: str, partitions: int = 1, **config: str | int) -> None:
    """A topic whose partitions all answer: what is written before that may change its order by being sent again."""
    broker.create_topic(name, partitions, **config)
    topic_of(broker, name).facts()


def topic_of(broker: KafkaBroker, name: str, isolation: Isolation = Isolation.COMMITTED) -> KafkaTopic:
    return KafkaTopic(KafkaAccess(broker.servers), name, isolation)


@pytest.fixture
def name() -> str:
    return next(_names)


def groups(broker: KafkaBroker) -> set[str]:
    listed = broker.admin().list_consumer_groups(request_timeout=20).result(20)
    assert not listed.errors
    return {each.group_id for each in listed.valid}


def test_facts_are_the_log_and_the_settings_as_they_are(broker: KafkaBroker, name: str) -> None:
    made(broker, name, 3, retention_bytes=5_000_000, cleanup_policy="compact,delete")
    broker.produce(name, [record(second, 1) for second in range(10)])
    broker.delete_records(name, {1: 4})
    facts = topic_of(broker, name).facts()
    assert facts.partitions == (PartitionState(0, 0, 0), PartitionState(1, 4, 10), PartitionState(2, 0, 0))
    assert facts.cleanup == {"compact", "delete"}
    assert (facts.retention_ms, facts.retention_bytes, facts.timestamp_type) == (None, 5_000_000, "CreateTime")
    broker.configure(name, retention_ms=86_400_000, message_timestamp_type="LogAppendTime")
    later = topic_of(broker, name).facts()
    assert (later.retention_ms, later.timestamp_type) == (86_400_000, "LogAppendTime")
    assert later.topic_id == facts.topic_id


def test_a_topic_that_was_made_again_has_another_id(broker: KafkaBroker, name: str) -> None:
    made(broker, name)
    before = topic_of(broker, name).facts().topic_id
    broker.delete_topic(name)
    made(broker, name)
    assert topic_of(broker, name).facts().topic_id not in ("", before)


def test_the_end_is_the_last_stable_offset_for_readers_of_committed_records(broker: KafkaBroker, name: str) -> None:
    made(broker, name)
    broker.transaction(name, [record(second) for second in range(10)])
    broker.transaction(name, [record(second) for second in range(10, 16)], commit=False)
    with broker.open_transaction(name, [record(second) for second in range(20, 23)]):
        committed, all_of_it = (topic_of(broker, name, level) for level in Isolation)
        assert committed.facts().partitions == (PartitionState(0, 0, 18),)
        assert all_of_it.facts().partitions == (PartitionState(0, 0, 21),)
        assert committed.record_time(0, 11) is None
        assert all_of_it.record_time(0, 11) == at(10)
        assert all_of_it.record_time(0, 17) == at(20)
        assert committed.record_time(0, 18) is None


def test_a_marker_of_a_transaction_ends_no_window(broker: KafkaBroker, name: str) -> None:
    """Markers carry the time of the commit: after them, old records seem to be followed by nothing but later ones."""
    made(broker, name)
    for first in (0, 10, 20):
        broker.transaction(name, [record(second) for second in range(first, first + 5)])
    topic = topic_of(broker, name)
    assert topic.offsets_at(at(12)) == {0: 5}
    assert topic.ends_at(at(12)) == {0: None}
    assert topic.ends_at(at(3)) == {0: 3}
    window = Interval(start=at(0), end=at(12))
    earlier = Interval(start=at(1), end=at(3))
    found = topic.window_ranges(topic.facts(), {"both": window, "one": earlier}, (timedelta(), timedelta()))
    assert found["both"] == (OffsetRange(partition=0, start=0, end=18),)
    assert found["one"] == (OffsetRange(partition=0, start=1, end=3),)


def test_a_moment_falls_on_the_first_record_that_is_not_before_it(broker: KafkaBroker, name: str) -> None:
    made(broker, name, 3)
    broker.produce(name, [record(seconds) for seconds in (0, 9, 1, 2, 3, 12)])
    broker.produce(name, [record(5, 1)])
    topic = topic_of(broker, name)
    assert topic.offsets_at(at(0)) == {0: 0, 1: 0, 2: None}
    assert topic.offsets_at(at(1)) == {0: 1, 1: 0, 2: None}
    assert topic.offsets_at(at(5) + timedelta(microseconds=1)) == {0: 1, 1: None, 2: None}
    assert topic.offsets_at(at(10)) == {0: 5, 1: None, 2: None}
    assert topic.offsets_at(at(13)) == {0: None, 1: None, 2: None}
    assert topic.offsets_at(datetime(1, 1, 1, tzinfo=UTC)) == {0: 0, 1: 0, 2: None}


def test_disordered_records_of_a_window_are_inside_its_ranges(broker: KafkaBroker, name: str) -> None:
    made(broker, name)
    broker.produce(name, [record(seconds) for seconds in (0, 9, 1, 2, 3, 12)])
    topic = topic_of(broker, name)
    window = Interval(start=at(1), end=at(5))
    none, enough = timedelta(), timedelta(seconds=6)
    assert event_ranges(topic.facts(), (topic.offsets_at, topic.ends_at), window, (none, enough)) == (
        OffsetRange(partition=0, start=1, end=5),
    )
    to_end = event_ranges(topic.facts(), (topic.offsets_at, topic.ends_at), window, (none, none), to_end=True)
    assert to_end == (OffsetRange(partition=0, start=1, end=6),)


def test_record_times_skip_what_is_not_there(broker: KafkaBroker, name: str) -> None:
    """Below the log's start, at gaps of compaction, at tombstones, beyond the end, in partitions that do not exist."""
    made(broker, name, 3, cleanup_policy="compact")
    topic = topic_of(broker, name)
    broker.produce(name, [Record("{}", "same", int(at(second).timestamp() * 1000), 0) for second in range(5)])
    broker.compact(name)
    broker.produce(name, [record(second, 1) for second in range(5)])
    broker.produce(name, [record(7, 2, None)])
    assert topic.record_time(0, 0) == at(4)
    assert topic.record_time(2, 0) is not None
    assert topic.record_times({1: topic.facts().partitions[1].log_end, 7: 0}) == {1: None, 7: None}


def test_looking_leaves_no_consumer_group_and_commits_nothing(broker: KafkaBroker, name: str) -> None:
    made(broker, name, 64)
    broker.produce(name, [record(number, number) for number in range(64)])
    before = groups(broker)
    mine = KafkaAccess(broker.servers, client={"group.id": "live-pipeline", "enable.auto.commit": "true"})
    topic = KafkaTopic(mine, name)
    assert topic.record_times(dict.fromkeys(range(64), 0)) == {number: at(number) for number in range(64)}
    assert topic.facts().partition(63) == PartitionState(63, 0, 1)
    assert groups(broker) == before
    assert "live-pipeline" not in before


def test_an_unknown_topic_is_told_with_names_like_it_and_is_not_made(broker: KafkaBroker, name: str) -> None:
    broker.create_topic(f"{name}-orders")
    with pytest.raises(UnknownName, match="has no topic") as caught:
        topic_of(broker, f"{name}-order").facts()
    assert f"{name}-orders" in caught.value.hint
    assert broker.partitions(f"{name}-order") == ()
    for asked in (lambda topic: topic.offsets_at(START), lambda topic: topic.record_time(0, 0)):
        with pytest.raises(UnknownName):
            asked(topic_of(broker, f"{name}-order"))


def test_a_broker_that_is_not_there_is_told_within_seconds() -> None:
    servers = f"127.0.0.1:{free_port()}"
    started = time.monotonic()
    with pytest.raises(Unavailable, match=f"Kafka at {servers} cannot be reached") as caught:
        KafkaTopic(KafkaAccess(servers, client={"sasl.password": "geheim"}), "orders").facts()
    assert time.monotonic() - started < 10
    assert "Connection refused" in caught.value.message
    assert "servers" in caught.value.hint
    assert "geheim" not in str(caught.value.as_dict())


def test_retention_that_passes_is_seen_and_names_what_is_missing(broker: KafkaBroker, name: str) -> None:
    made(broker, name, segment_ms=1_000, retention_ms=-1)
    now = datetime.now(UTC)
    day = timedelta(days=1)
    broker.produce(name, [Record("{}", timestamp=int((now - 3 * day).timestamp() * 1000), partition=0)] * 5)
    broker.produce(name, [Record("{}", timestamp=int((now - day).timestamp() * 1000), partition=0)] * 5)
    topic, wanted = topic_of(broker, name), OffsetRange(partition=0, start=0, end=10)

    def judged() -> tuple[Survival, OffsetRange | None]:
        found = partition_survival(topic.facts(), wanted, topic.record_time(0, 0), now, timedelta(hours=1))
        return found.survival, found.missing

    assert judged() == (Survival.UNBOUNDED, None)
    broker.configure(name, retention_ms=100 * 86_400_000)
    assert judged() == (Survival.OK, None)
    broker.expire(name, 2 * 86_400_000, {0: 5})
    assert judged() == (Survival.PARTIAL, OffsetRange(partition=0, start=0, end=5))


def test_the_answer_of_the_command_is_complete(broker: KafkaBroker, name: str) -> None:
    made(broker, name, 2)
    broker.produce(name, [record(second) for second in range(10)])
    source = LogSource("orders", name, Layout(Encoding.JSON, "id BIGINT"))
    found = offsets_at(KafkaAccess(broker.servers), source, at(3.5))
    first, silent = found.partitions
    assert (first.log_start, first.offset, first.log_end, first.span, first.record_time) == (0, 4, 10, 6, at(4))
    assert (silent.offset, silent.span, silent.record_time) == (None, 0, None)
    assert found.span == 6
