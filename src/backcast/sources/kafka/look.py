"""Questions about one topic: looked at, nothing changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from backcast.model.coverage import Status
from backcast.model.log import EventSpan
from backcast.model.time import first_instant
from backcast.model.topic_report import PartitionOffsets, TopicOffsets, WindowSurvey
from backcast.sources.kafka.asked import without_event_time
from backcast.sources.kafka.ranges import moved, whole
from backcast.sources.kafka.record_times import first_records
from backcast.sources.kafka.survey import micros, survey
from backcast.sources.kafka.topic import KafkaTopic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.model.column import TimeColumn
    from backcast.model.log import Ranges
    from backcast.model.source import KafkaAccess, LogSource
    from backcast.model.time import Interval

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def offsets_at(access: KafkaAccess, source: LogSource, at: datetime) -> TopicOffsets:
    """Where a moment of record time lies in each partition. Needs no Spark."""
    topic = KafkaTopic(access, source.topic, source.isolation)
    facts, found = topic.facts(), topic.offsets_at(at)
    times = topic.record_times({number: offset for number, offset in found.items() if offset is not None})
    return TopicOffsets(
        source=source.name,
        topic=source.topic,
        topic_id=facts.topic_id,
        isolation=source.isolation,
        timestamp_type=facts.timestamp_type,
        at=at,
        partitions=tuple(
            PartitionOffsets(
                partition=each.partition,
                log_start=each.log_start,
                offset=found.get(each.partition),
                log_end=each.log_end,
                record_time=times.get(each.partition),
            )
            for each in facts.partitions
        ),
    )


def records_in(access: KafkaAccess, source: LogSource, ranges: Ranges) -> list[bool | None]:
    """Whether the log has a record in each range; None where it no longer reaches that far back. Needs no Spark."""
    facts = KafkaTopic(access, source.topic, source.isolation).facts()
    inside = []
    for each in ranges:
        state = facts.partition(each.partition)
        if state is not None and state.log_start <= each.start and each.end <= state.log_end and each.span:
            inside.append(each)
    places = [(each.partition, each.start) for each in inside]
    first = first_records(access, source.topic, source.isolation, places)
    ends = {each: one.offset for each in inside if (one := first[each.partition, each.start]) is not None}
    return [ends.get(each, each.end) < each.end if each in inside else None for each in ranges]


def event_span(spark: SparkSession, access: KafkaAccess, source: LogSource) -> EventSpan | None:
    """The event times that the log has. None: it has no record."""
    from pyspark.sql import functions as F

    from backcast.sources.kafka.decode import STATUS
    from backcast.sources.kafka.read import read_log

    if source.time is None:
        raise without_event_time(source)
    topic = KafkaTopic(access, source.topic, source.isolation)
    facts = topic.facts()
    rows = read_log(spark, access, source, whole(facts)).where(F.col(STATUS) == Status.ROW.value)
    at = micros(source.time, dict(rows.dtypes)[source.time.column])
    (found,) = rows.agg(F.min(at).alias("first"), F.max(at).alias("last")).collect()
    if found["first"] is None:
        return None
    first, last = (_instant(found[name], source.time) for name in ("first", "last"))
    cut = topic.record_times({each.partition: each.log_start for each in facts.partitions if each.log_start})
    known = [each for each in cut.values() if each is not None]
    return EventSpan(max((first, *(moved(each, source.slack_before) for each in known))), last, is_cut=bool(known))


def _instant(micros_: int, time: TimeColumn) -> datetime:
    found = _EPOCH + timedelta(microseconds=micros_)
    return first_instant(found.replace(tzinfo=None), time.zone) if time.is_wall else found


def window_of(
    spark: SparkSession, access: KafkaAccess, source: LogSource, window: Interval, *, to_end: bool
) -> WindowSurvey:
    """Which offsets hold a window of event time: scanned with the declared slack, or to the end of the log."""
    topic = KafkaTopic(access, source.topic, source.isolation)
    to_end = to_end or source.to_end
    slack = (source.slack_before, source.slack_after)
    ranges = topic.window_ranges(topic.facts(), {"": window}, slack, to_end=to_end)[""]
    time = source.time
    return WindowSurvey(
        source=source.name,
        topic=source.topic,
        column=time.column if time else "",
        zone=time.zone if time else "UTC",
        window=window,
        to_end=to_end,
        partitions=survey(spark, access, source, ranges, window),
    )
