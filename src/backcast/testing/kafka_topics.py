"""What a test does to the topics of a broker: write, delete, compact, expire, and wait until the broker has done it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backcast.testing.kafka_records import Position, Record, write

if TYPE_CHECKING:
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient

_SECONDS = 30.0
_ROLL_KEY = "rolled"


class KafkaTopics:
    """The topics of the broker at `servers`, which keeps them in the folder `data` of this machine."""

    def __init__(self, servers: str, data: Path) -> None:
        self.servers = servers
        self.data = data
        # A producer needs up to a second until it may begin its first transaction.
        self._idle: list[Producer] = []

    @cached_property
    def _admin(self) -> AdminClient:
        from confluent_kafka.admin import AdminClient

        return AdminClient(self._client())

    def admin(self) -> AdminClient:
        """The client that everything here goes through."""
        return self._admin

    def create_topic(self, name: str, partitions: int = 1, **config: str | int) -> str:
        """The name, once every partition has a leader. `cleanup_policy="compact"` sets cleanup.policy.

        Records of any age stay, unless `retention_ms` says otherwise: tests write the past.
        """
        from confluent_kafka.admin import NewTopic

        settings = {"retention.ms": "-1", **_dotted(config)}
        topic = NewTopic(name, partitions, 1, config=settings)
        patient(lambda: self._admin.create_topics([topic])[name].result(_SECONDS))
        self._await_partitions(name, partitions)
        return name

    def add_partitions(self, topic: str, total: int) -> None:
        """Let the topic have this many partitions in all."""
        from confluent_kafka.admin import NewPartitions

        self._admin.create_partitions([NewPartitions(topic, total)])[topic].result(_SECONDS)
        self._await_partitions(topic, total)

    def delete_topic(self, name: str) -> None:
        """Until it is gone; another topic of that name may be created afterwards."""
        self._admin.delete_topics([name])[name].result(_SECONDS)
        wait_until(lambda: name not in self._admin.list_topics(timeout=_SECONDS).topics, f"{name} is gone")

    def configure(self, topic: str, **config: str | int | None) -> None:
        """Set these configurations of the topic; None takes one away."""
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

        operation = AlterConfigOpType
        entries = [
            ConfigEntry(name, value, incremental_operation=operation.DELETE if value is None else operation.SET)
            for name, value in _dotted(config).items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self._admin.incremental_alter_configs([resource])[resource].result(_SECONDS)

    def partitions(self, topic: str) -> tuple[int, ...]:
        """The numbers of the topic's partitions; none while it does not exist."""
        return tuple(sorted(self._admin.list_topics(topic, timeout=_SECONDS).topics[topic].partitions))

    def start_offsets(self, topic: str) -> dict[int, int]:
        """The first offset that each partition still has."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(topic, OffsetSpec.earliest(), committed=False)

    def end_offsets(self, topic: str, *, committed: bool = False) -> dict[int, int]:
        """One past the last offset of each partition; of those that a reader of committed records gets to see."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(topic, OffsetSpec.latest(), committed=committed)

    def groups(self) -> set[str]:
        """The consumer groups that the broker knows, with members or without."""
        listed = self.admin().list_consumer_groups(request_timeout=_SECONDS).result(_SECONDS)
        if listed.errors:
            raise listed.errors[0]
        return {each.group_id for each in listed.valid}

    def produce(self, topic: str, records: Iterable[Record]) -> list[Position]:
        """Write the records in their order and tell where each went."""
        from confluent_kafka import Producer

        # Without it a batch that is sent again may land behind a later one.
        return write(Producer(self._client({"enable.idempotence": True})), topic, records)

    def transaction(self, topic: str, records: Iterable[Record], *, commit: bool = True) -> list[Position]:
        """Write the records in one transaction, and then a marker per partition that it was committed or aborted."""
        with self.open_transaction(topic, records, commit=commit) as positions:
            return positions

    @contextmanager
    def open_transaction(
        self, topic: str, records: Iterable[Record], *, commit: bool = False
    ) -> Iterator[list[Position]]:
        """While the block runs the records are there and nobody has decided about them."""
        producer = self._idle.pop() if self._idle else self._transactional()
        producer.begin_transaction()
        # An abort forgets what was not sent yet; sent first, it leaves aborted records in the log.
        positions = write(producer, topic, records)
        yield positions
        ends = self.end_offsets(topic)
        if commit:
            producer.commit_transaction(_SECONDS)
        else:
            producer.abort_transaction(_SECONDS)
        # The broker answers when the decision is safe, and writes its markers afterwards.
        touched = {each.partition for each in positions}
        wait_until(lambda: all(self.end_offsets(topic)[each] > ends[each] for each in touched), "the markers are there")
        self._idle.append(producer)

    def delete_records(self, topic: str, before: Mapping[int, int]) -> None:
        """Move the log start of these partitions to these offsets."""
        from confluent_kafka import TopicPartition

        wanted = [TopicPartition(topic, partition, offset) for partition, offset in before.items()]
        for future in self._admin.delete_records(wanted).values():
            future.result(_SECONDS)

    def expire(self, topic: str, retention_ms: int, starts: Mapping[int, int]) -> None:
        """Shorten the retention and wait until the log of each of these partitions starts there.

        Kafka takes whole segments: `segment_ms` of the topic says after which time of records a new one begins.
        """
        self.configure(topic, retention_ms=retention_ms)
        wait_until(lambda: starts.items() <= self.start_offsets(topic).items(), f"{topic} starts at {dict(starts)}")

    def compact(self, topic: str) -> dict[int, int]:
        """Compact all that the topic has now; only the last record of a key stays. The ends before.

        Kafka leaves the segment alone that it writes to, so each partition gets one more record, with a key of its own.
        """
        ends = self.end_offsets(topic)
        self.configure(topic, segment_ms=1)
        later = int(time.time() * 1000) + 1000
        self.produce(topic, [Record("", _ROLL_KEY, later, partition) for partition in ends])
        wait_until(
            lambda: all(self._cleaned(topic).get(partition, 0) >= end for partition, end in ends.items() if end),
            f"{topic} is compacted",
        )
        self.configure(topic, segment_ms=None)
        return ends

    def _transactional(self) -> Producer:
        from confluent_kafka import Producer

        producer = Producer(self._client({"transactional.id": secrets.token_hex(8)}))
        producer.init_transactions(_SECONDS)
        return producer

    def _cleaned(self, topic: str) -> dict[int, int]:
        """Up to where the broker says that it has compacted."""
        checkpoint = self.data / "cleaner-offset-checkpoint"
        lines = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
        parts = [line.split() for line in lines]
        return {int(partition): int(offset) for name, partition, offset in parts if name == topic}

    def _offsets(self, topic: str, which: Any, *, committed: bool) -> dict[int, int]:
        from confluent_kafka import IsolationLevel, TopicPartition

        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        wanted = {TopicPartition(topic, partition): which for partition in self.partitions(topic)}
        answers = self._admin.list_offsets(wanted, isolation_level=level, request_timeout=_SECONDS)
        return {each.partition: answer.result(_SECONDS).offset for each, answer in answers.items()}

    def _await_partitions(self, topic: str, total: int) -> None:
        from confluent_kafka import KafkaException

        def all_answer() -> bool:
            """A leader that was just made may say that it is none."""
            try:
                known = self._admin.list_topics(topic, timeout=_SECONDS).topics[topic].partitions.values()
                led = len(known) == total and all(each.leader >= 0 for each in known)
                return led and len(self.end_offsets(topic)) == total
            except KafkaException:
                return False

        wait_until(all_answer, f"{topic} has {total} partitions")

    def _client(self, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
        # A client says much on stderr when its broker goes away, which is how every test ends.
        quiet = {"log_level": 0, "partitioner": "murmur2_random", "linger.ms": 1}
        return {"bootstrap.servers": self.servers, **quiet, **(more or {})}


def patient(ask: Callable[[], Any]) -> None:
    """Ask again while a broker that has just begun, or is very busy, says that it cannot serve yet."""
    from confluent_kafka import KafkaError, KafkaException

    passing = {KafkaError.INVALID_REPLICATION_FACTOR, KafkaError.NOT_CONTROLLER, KafkaError.BROKER_NOT_AVAILABLE}
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            ask()
            return
        except KafkaException as error:
            if error.args[0].code() not in passing or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def wait_until(true: Callable[[], bool], what: str, seconds: float = _SECONDS) -> None:
    """Ask until it is so. Raises TimeoutError with what was waited for."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(0.02)


def _dotted(config: Mapping[str, str | int | None]) -> dict[str, Any]:
    return {name.replace("_", "."): None if value is None else str(value) for name, value in config.items()}
