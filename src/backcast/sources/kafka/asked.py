"""What a request asks of a topic, as literal offsets."""

from __future__ import annotations

from datetime import datetime

from backcast.errors import InvalidRequest
from backcast.model.log import OffsetRange, Ranges, TopicFacts
from backcast.model.request import Request
from backcast.model.source import LogSource
from backcast.model.time import Interval, parse_interval
from backcast.sources.kafka.checkpoint import checkpoint_position
from backcast.sources.kafka.ranges import moved, ranges_for_times
from backcast.sources.kafka.spelling import parse_offsets, resolve_offsets
from backcast.sources.kafka.topic import KafkaTopic


def asked_ranges(
    topic: KafkaTopic, facts: TopicFacts, source: LogSource, request: Request, window: Interval | None
) -> tuple[Ranges, datetime | None]:
    """By offsets, by record time, from where a stream stands, or the offsets that hold a window of event time.

    And the earliest record time that was looked up for it, if one was.
    """
    if request.offsets is not None:
        return resolve_offsets(parse_offsets(request.offsets, source.topic), facts), None
    if request.record_time is not None:
        zone = source.time.zone if source.time else "UTC"
        times = parse_interval(request.record_time, zone)
        return ranges_for_times(facts, topic.offsets_at(times.start), topic.ends_at(times.end)), times.start
    if request.checkpoint is not None:
        return _since(facts, checkpoint_position(request.checkpoint, source.topic)), None
    if window is None or source.time is None:
        raise without_event_time(source)
    slack = (source.slack_before, source.slack_after)
    found = topic.window_ranges(facts, {"": window}, slack, to_end=source.to_end)[""]
    return found, moved(window.start, -slack[0])


def without_event_time(source: LogSource) -> InvalidRequest:
    return InvalidRequest(
        f"source {source.name} has no event time, so nobody can say which records a window needs",
        hint=f"declare `time` under sources.{source.name}, or ask with --offsets or --record-time",
    )


def _since(facts: TopicFacts, position: dict[int, int]) -> Ranges:
    """To the end of the log; a partition that the stream does not know yet is read from its start."""
    found = []
    for each in facts.partitions:
        start = position.get(each.partition, each.log_start)
        if start > each.log_end:
            raise InvalidRequest(
                f"the stream has read partition {each.partition} up to {start}, and the log ends at {each.log_end}",
                hint="the topic was made again since: start a new checkpoint for the stream",
            )
        found.append(OffsetRange(partition=each.partition, start=start, end=each.log_end))
    return tuple(found)
