"""When records were written: read one of each partition, beside every consumer group and without committing."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from backcast.sources.kafka.admin import ANSWER_SECONDS, Complaints, rejected, settings
from backcast.sources.kafka.complaints import Complaint, failed

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

    from backcast.model.log import Isolation
    from backcast.model.source import KafkaAccess

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime.max.replace(tzinfo=UTC)
_SLICE = 0.1


def instant_of(milliseconds: int) -> datetime:
    """Kafka's milliseconds as an instant. Producers that write microseconds there reach beyond the calendar's end."""
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return _LATEST


def milliseconds_of(instant: datetime) -> int:
    """The first of Kafka's milliseconds that is not before the instant; below zero they mean something else."""
    return max(0, -((_EPOCH - instant) // timedelta(milliseconds=1)))


Place = tuple[int, int]
"""Partition and offset."""


@dataclass(frozen=True, slots=True)
class FirstRecord:
    """Where a record was found, and its time; None when it carries none."""

    offset: int
    time: datetime | None


def first_records(
    access: KafkaAccess, topic: str, isolation: Isolation, places: Iterable[Place], seconds: float = ANSWER_SECONDS
) -> dict[Place, FirstRecord | None]:
    """The first record at or after each place; None where there is none.

    The offsets must lie in the log. Raises Unavailable when no answer comes for that long.
    """
    from confluent_kafka import TopicPartition

    doing = f"reading single records of topic {topic}"
    waiting: dict[int, list[int]] = {}
    for partition, offset in sorted(set(places), reverse=True):
        waiting.setdefault(partition, []).append(offset)
    found: dict[Place, FirstRecord | None] = {}
    if not waiting:
        return found
    with _consumer(access, isolation) as (consumer, complaints):
        consumer.assign([TopicPartition(topic, partition, offsets[-1]) for partition, offsets in waiting.items()])
        deadline = time.monotonic() + seconds
        while waiting:
            message = consumer.poll(_SLICE)
            refused = complaints.access()
            if refused is not None:
                raise failed(refused, access, doing)
            # A tombstone is false: only None means that nothing came.
            answer = None if message is None else _answer(message, access, doing)
            if answer is not None and answer[0] in waiting:
                partition, record = answer
                found[(partition, waiting[partition].pop())] = record
                _go_on(consumer, topic, partition, waiting)
                deadline = time.monotonic() + seconds
            elif time.monotonic() >= deadline:
                raise failed(complaints.best(), access, doing)
    return found


def _go_on(consumer: Consumer, topic: str, partition: int, waiting: dict[int, list[int]]) -> None:
    """A consumer stands at one offset of a partition at a time: to the next one, or away from it."""
    from confluent_kafka import TopicPartition

    if waiting[partition]:
        consumer.seek(TopicPartition(topic, partition, waiting[partition][-1]))
    else:
        del waiting[partition]
        consumer.incremental_unassign([TopicPartition(topic, partition)])


def _answer(message: Message, access: KafkaAccess, doing: str) -> tuple[int, FirstRecord | None] | None:
    """Partition and record; no record at the end of the log. None for a remark that needs no answer."""
    from confluent_kafka import TIMESTAMP_NOT_AVAILABLE

    error, partition = message.error(), int(message.partition() or 0)
    if error is None:
        kind, milliseconds = message.timestamp()
        known = kind != TIMESTAMP_NOT_AVAILABLE and milliseconds >= 0
        return partition, FirstRecord(int(message.offset() or 0), instant_of(milliseconds) if known else None)
    complaint = Complaint.of(error)
    if complaint.name == "_PARTITION_EOF":
        return partition, None
    if complaint.about_rights or error.fatal():
        raise failed(complaint, access, doing)
    # Among them: that the group is not allowed. No group is needed, and the records come all the same.
    return None


@contextmanager
def _consumer(access: KafkaAccess, isolation: Isolation) -> Iterator[tuple[Consumer, Complaints]]:
    """A consumer that belongs to nobody: the client wants the name of a group, and gets one that is used once."""
    from confluent_kafka import Consumer, KafkaException

    harmless: dict[str, Any] = {
        "group.id": f"backcast-look-{secrets.token_hex(8)}",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "isolation.level": isolation.value,
        # Retention may pass an offset between two questions; what comes next is then what there is.
        "auto.offset.reset": "earliest",
        # One record at a time is all that is wanted, and the next one at once.
        "queued.min.messages": 1,
        "fetch.queue.backoff.ms": 1,
        "fetch.wait.max.ms": 10,
        "fetch.message.max.bytes": 65_536,
    }
    complaints = Complaints()
    options = settings(access, complaints, harmless)
    options.pop("group.instance.id", None)
    try:
        consumer = Consumer(options)
    except (KafkaException, TypeError, ValueError) as error:
        raise rejected(error, access) from None
    try:
        yield consumer, complaints
    except KafkaException as error:
        raise failed(Complaint.of(error), access, "reading single records") from None
    finally:
        consumer.close()
