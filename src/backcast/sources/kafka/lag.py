"""A checkpoint against its topic: what is not read, since when, and how long it stays. Needs no Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest
from backcast.model.lag import PartitionLag, Standing, StreamLag
from backcast.model.log import OffsetRange, PartitionState, TopicFacts
from backcast.model.manifest import Survival
from backcast.sources.kafka.history import Batch, checkpoint_batches
from backcast.sources.kafka.record_times import FirstRecord, Place, first_records
from backcast.sources.kafka.retention import partition_survival
from backcast.sources.kafka.topic import KafkaTopic

if TYPE_CHECKING:
    from backcast.model.source import KafkaAccess, LogSource
    from backcast.model.stream import StreamSpec

_PACE = 10
"""Batches that tell how fast a stream is now."""
_CLOCKS = timedelta(minutes=10)
"""How far the clocks of producers may be ahead."""

Found = Mapping[Place, FirstRecord | None]


@dataclass(frozen=True, slots=True)
class Position:
    """Where a stream stands."""

    batch: Batch
    """The newest that is committed."""
    planned: int | None
    pace: float | None


def lag_of(
    access: KafkaAccess, source: LogSource, checkpoint: str, now: datetime, stream: StreamSpec | None = None
) -> StreamLag:
    """Raises InvalidRequest for a folder that is no checkpoint of a stream over this topic."""
    position = position_of(checkpoint_batches(checkpoint, source.topic), checkpoint)
    topic = KafkaTopic(access, source.topic, source.isolation)
    facts = topic.facts()
    records = first_records(access, source.topic, source.isolation, places(facts, position.batch.ends))
    partitions = judged(facts, position, records, now)
    return StreamLag(
        stream=None if stream is None else stream.name,
        pipeline=None if stream is None else stream.pipeline.name,
        ours=stream is not None and not stream.external,
        source=source.name,
        topic=source.topic,
        topic_id=facts.topic_id,
        checkpoint=checkpoint,
        batch=position.batch.number,
        begun=position.batch.begun,
        planned=position.planned,
        watermark=position.batch.watermark,
        pace=position.pace,
        measured_at=now,
        partitions=partitions,
    )


def position_of(batches: Sequence[Batch], checkpoint: str) -> Position:
    """Raises InvalidRequest for a stream that has not completed a batch."""
    committed = [each for each in batches if each.committed]
    if not committed:
        hint = "it has read nothing yet: start the stream"
        raise InvalidRequest(f"{checkpoint}: the query has not completed a batch yet", hint=hint)
    last = committed[-1]
    planned = next((each.number for each in batches if each.number > last.number), None)
    return Position(last, planned, pace_of(committed[-_PACE:]))


def pace_of(batches: Sequence[Batch]) -> float | None:
    """Records a second; None when fewer than two batches are known. Those of the first were read before."""
    first, last = batches[0], batches[-1]
    seconds = (last.begun - first.begun).total_seconds()
    if seconds <= 0:
        return None
    # A partition that came in between counts from where it was first met.
    known = {number: end for each in reversed(batches) for number, end in each.ends.items()}
    return sum(max(0, end - known[number]) for number, end in last.ends.items()) / seconds


def places(facts: TopicFacts, read: Mapping[int, int]) -> list[Place]:
    """Of each partition: the last record that was read, the first that was not, and the last of the log."""
    found = set()
    for each in facts.partitions:
        start = read.get(each.partition, each.log_start)
        asked = (start - 1, max(start, each.log_start), each.log_end - 1)
        found |= {(each.partition, offset) for offset in asked if each.log_start <= offset < each.log_end}
    return sorted(found)


def judged(facts: TopicFacts, position: Position, records: Found, now: datetime) -> tuple[PartitionLag, ...]:
    """Every partition that the topic has or the checkpoint knows."""
    read = position.batch.ends
    left = sum(max(0, each.log_end - read.get(each.partition, each.log_start)) for each in facts.partitions)
    # At this pace; retention may be faster.
    reading = timedelta(seconds=left / position.pace) if position.pace else timedelta()
    known = [_known(facts, each, position, records, now, reading) for each in facts.partitions]
    numbers = {each.partition for each in facts.partitions}
    vanished = [_vanished(number, offset) for number, offset in read.items() if number not in numbers]
    return tuple(sorted((*known, *vanished), key=lambda each: each.partition))


def _known(
    facts: TopicFacts, state: PartitionState, position: Position, records: Found, now: datetime, reading: timedelta
) -> PartitionLag:
    number = state.partition
    at = position.batch.ends.get(number)
    # A stream takes up a partition that is new from its first offset.
    start = 0 if at is None else at
    unread = OffsetRange(partition=number, start=min(start, state.log_end), end=state.log_end)
    first = _time(records.get((number, max(start, state.log_start))))
    survival = partition_survival(facts, unread, first, now, reading)
    return PartitionLag(
        partition=number,
        standing=_standing(state, at, position.batch, records),
        position=at,
        log_start=state.log_start,
        log_end=state.log_end,
        behind=max(0, state.log_end - max(unread.start, state.log_start)),
        lost=survival.missing,
        first_unread=first if unread.span else None,
        newest=_time(records.get((number, state.log_end - 1))),
        survival=survival.survival,
        survives_until=survival.survives_until,
    )


def _standing(state: PartitionState, at: int | None, batch: Batch, records: Found) -> Standing:
    if at is None:
        return Standing.NEW
    if at > state.log_end:
        return Standing.AHEAD
    last = records.get((state.partition, at - 1))
    later = last is not None and last.offset == at - 1 and last.time is not None and last.time > batch.begun + _CLOCKS
    return Standing.REMADE if later else Standing.KNOWN


def _time(record: FirstRecord | None) -> datetime | None:
    return None if record is None else record.time


def _vanished(number: int, offset: int) -> PartitionLag:
    return PartitionLag(
        partition=number,
        standing=Standing.VANISHED,
        position=offset,
        log_start=0,
        log_end=0,
        behind=0,
        lost=None,
        first_unread=None,
        newest=None,
        survival=Survival.OK,
        survives_until=None,
    )
