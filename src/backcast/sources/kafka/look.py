"""The answers of `backcast kafka`: one topic looked at, nothing changed."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from backcast.model.topic_report import PartitionOffsets, TopicOffsets, WindowSurvey
from backcast.sources.kafka.survey import survey
from backcast.sources.kafka.topic import KafkaTopic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.model.source import KafkaAccess, LogSource
    from backcast.model.time import Interval


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
