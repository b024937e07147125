"""What the control plane asks about the topics of a project. Brokers are asked anew each time; nothing is changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from backcast.model.lag import StreamLag
    from backcast.model.log import EventSpan, Ranges, TopicFacts
    from backcast.model.source import LogSource
    from backcast.model.stream import StreamSpec
    from backcast.model.throttle import Behind
    from backcast.model.topic_report import TopicOffsets, WindowSurvey
    from backcast.ports import Clock
    from backcast.project.config import Project


class TopicQuestions(ABC):
    """The part of the `World` that is about topics alone."""

    project: Project
    clock: Clock

    @abstractmethod
    def spark(self) -> SparkSession: ...

    def kafka_offsets(self, name: str, at: str) -> TopicOffsets:
        from backcast.model.time import parse_instant
        from backcast.project.topics import find_source, zone_of
        from backcast.sources.kafka.look import offsets_at

        source = find_source(self.project, name)
        return offsets_at(self.project.kafka_access(source.name), source, parse_instant(at, zone_of(source)))

    def kafka_window(self, name: str, event_time: str, *, to_end: bool) -> WindowSurvey:
        from backcast.model.time import parse_interval
        from backcast.project.topics import find_source, zone_of
        from backcast.sources.kafka.look import window_of

        source = find_source(self.project, name)
        window, access = parse_interval(event_time, zone_of(source)), self.project.kafka_access(source.name)
        return window_of(self.spark(), access, source, window, to_end=to_end)

    def topic(self, source: LogSource) -> TopicFacts:
        from backcast.sources.kafka.topic import KafkaTopic

        return KafkaTopic(self.project.kafka_access(source.name), source.topic, source.isolation).facts()

    def records_in(self, source: LogSource, ranges: Ranges) -> list[bool | None]:
        from backcast.sources.kafka.look import records_in

        return records_in(self.project.kafka_access(source.name), source, ranges)

    def event_span(self, source: LogSource) -> EventSpan | None:
        from backcast.sources.kafka.look import event_span

        return event_span(self.spark(), self.project.kafka_access(source.name), source)

    def stream_lag(self, name: str, topic: str | None) -> StreamLag:
        from backcast.project.lag import stream_lag

        return stream_lag(self.project, name, topic, self.clock.now())

    def behind(self, stream: StreamSpec, read: Mapping[int, int] | None) -> Behind:
        from backcast.project.lag import behind

        return behind(self.project, stream, read)
