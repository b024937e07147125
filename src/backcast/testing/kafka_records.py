"""Records on their way into a topic, and where the broker says that it put each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from confluent_kafka import Producer

_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Record:
    """One record to be written. A value of None is a tombstone; a timestamp of None is the time of writing."""

    value: str | bytes | None
    key: str | bytes | None = None
    timestamp: int | None = None
    """Milliseconds since the epoch, as the producer claims; Kafka's clients cannot claim 0."""
    partition: int | None = None
    """None: by the key, as Java's producer does."""
    headers: tuple[tuple[str, str | bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Position:
    """Where a record was written."""

    partition: int
    offset: int


def write(producer: Producer, topic: str, records: Iterable[Record]) -> list[Position]:
    """Write the records in their order and wait until the broker has them. Raises what it says when it refuses one."""
    answers = _hand_over(producer, topic, records)
    left = producer.flush(_SECONDS)
    if left:
        raise TimeoutError(f"{left} records were not acknowledged within {_SECONDS:g} s")
    positions: list[Position] = []
    for _, answer in sorted(answers.items()):
        if isinstance(answer, Exception):
            raise answer
        positions.append(answer)
    return positions


def _hand_over(producer: Producer, topic: str, records: Iterable[Record]) -> dict[int, Position | Exception]:
    """Hand the records over; the answer fills up by number as the broker acknowledges them."""
    from confluent_kafka import KafkaException

    answers: dict[int, Position | Exception] = {}

    def told(number: int) -> Callable[[Any, Any], None]:
        def acknowledged(error: Any, message: Any) -> None:
            answers[number] = KafkaException(error) if error else Position(message.partition(), message.offset())

        return acknowledged

    for number, record in enumerate(records):
        arguments: dict[str, Any] = {
            "key": record.key,
            "timestamp": record.timestamp or 0,
            "partition": -1 if record.partition is None else record.partition,
            "headers": list(record.headers),
            "on_delivery": told(number),
        }
        while True:
            try:
                producer.produce(topic, record.value, **arguments)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    return answers
