"""A topic as an input: literal offsets resolved once, checked before they are read, and proven after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from backcast.errors import Drifted, InvalidRequest
from backcast.model.log import (
    LogPin,
    LogSlice,
    OffsetRange,
    PinnedPartition,
    Ranges,
    TopicFacts,
    cut,
    hull,
    owned_slices,
    span,
)
from backcast.model.manifest import InputPin, Survival
from backcast.model.pieces import layers
from backcast.model.request import Request
from backcast.model.source import KafkaAccess, LogSource
from backcast.model.table import Column, TableIdentity
from backcast.model.time import Interval
from backcast.ports import Reading
from backcast.sources.kafka.asked import asked_ranges, without_event_time
from backcast.sources.kafka.job import LogJob
from backcast.sources.kafka.ranges import moved
from backcast.sources.kafka.read import read_log
from backcast.sources.kafka.retention import PartitionSurvival, forgotten, partition_survival, worst
from backcast.sources.kafka.spelling import format_ranges
from backcast.sources.kafka.topic import KafkaTopic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RECORDS_A_CHUNK = 2_000_000
_BYTES_A_RECORD = 256
"""A guess: brokers tell how many records there are, not how big."""


@dataclass(frozen=True, slots=True)
class KafkaInput:
    """The port Input over one topic."""

    name: str
    source: LogSource
    access: KafkaAccess
    spark: SparkSession

    @property
    def topic(self) -> KafkaTopic:
        return KafkaTopic(self.access, self.source.topic, self.source.isolation)

    def identity(self) -> TableIdentity:
        return self._identity(self.topic.facts().topic_id)

    def pin(self, windows: Mapping[str, Interval], now: datetime) -> InputPin:
        """For each chunk the offsets that hold its event time, with the declared slack on both sides."""
        if self.source.time is None:
            raise without_event_time(self.source)
        facts = self.topic.facts()
        slack = (self.source.slack_before, self.source.slack_after)
        found = self.topic.window_ranges(facts, windows, slack, to_end=self.source.to_end)
        slices = {name: (window, found[name]) for name, window in windows.items()}
        since = moved(min(each.start for each in windows.values()), -slack[0])
        return self._pinned(facts, owned_slices(slices), now, since)

    def pin_offsets(self, request: Request, window: Interval | None, now: datetime, most: int) -> InputPin:
        """Offsets that start below the log's are missing ones; what is left is cut."""
        facts = self.topic.facts()
        ranges, since = asked_ranges(self.topic, facts, self.source, request, window)
        pieces = max(1, min(most, -(-span(ranges) // _RECORDS_A_CHUNK)))
        width = len(str(pieces))
        slices = {
            f"slice-{number:0{width}}": LogSlice(ranges=each, owned=each, window=window)
            for number, each in enumerate(cut(ranges, pieces), 1)
        }
        return self._pinned(facts, slices, now, since)

    def _pinned(
        self, facts: TopicFacts, slices: Mapping[str, LogSlice], now: datetime, since: datetime | None
    ) -> InputPin:
        """The pin of what these chunks read; `since` is the earliest record time that was looked up, if one was."""
        ranges = hull(each.ranges for each in slices.values())
        starts: dict[int, int] = {}
        for each in (every for one in slices.values() for every in one.ranges):
            starts[each.partition] = min(each.start, starts.get(each.partition, each.start))
        first = self.topic.record_times(starts)
        judged = [partition_survival(facts, each, first.get(each.partition), now, timedelta()) for each in ranges]
        missing = [each.missing for each in judged if each.missing is not None]
        survival = worst(each.survival for each in judged)
        if since is not None:
            asked = tuple(OffsetRange(partition=each, start=start, end=start) for each, start in starts.items())
            lost = forgotten(facts, asked, first, since, now)
            missing += lost
            survival = (Survival.PARTIAL if span(ranges) else Survival.GONE) if lost else survival
        return InputPin(
            name=self.name,
            dataset=self.source.name,
            identity=self._identity(facts.topic_id),
            version=format_ranges(ranges),
            windowed=True,
            survival=survival,
            survives_until=min((each.survives_until for each in judged if each.survives_until), default=None),
            files=0,
            rows=span(ranges),
            bytes=span(ranges) * _BYTES_A_RECORD,
            log=self._log(facts, judged, ranges, tuple(missing), slices),
        )

    def _log(
        self,
        facts: TopicFacts,
        judged: Sequence[PartitionSurvival],
        ranges: Ranges,
        missing: Ranges,
        slices: Mapping[str, LogSlice],
    ) -> LogPin:
        states = {each.partition: each for each in facts.partitions}
        return LogPin(
            topic=facts.topic,
            topic_id=facts.topic_id,
            isolation=self.source.isolation,
            cleanup=tuple(sorted(facts.cleanup)),
            retention_ms=facts.retention_ms,
            retention_bytes=facts.retention_bytes,
            timestamp_type=facts.timestamp_type,
            partitions=tuple(
                PinnedPartition(
                    partition=each.partition,
                    start=each.start,
                    end=each.end,
                    log_start=states[each.partition].log_start,
                    log_end=states[each.partition].log_end,
                    survives_until=one.survives_until,
                )
                for each, one in zip(ranges, judged, strict=True)
            ),
            missing=missing,
            to_end=self.source.to_end,
            slices=dict(slices),
        )

    def check(self, pin: InputPin) -> None:
        log = log_of(pin)
        facts = self.topic.facts()
        if facts.topic_id != log.topic_id:
            raise Drifted(
                f"topic {log.topic} was deleted and made again since the plan: its offsets mean other records",
                hint="plan again",
            )
        for each in log.partitions:
            state = facts.partition(each.partition)
            if state is None or state.log_end < each.end:
                raise Drifted(
                    f"partition {each.partition} of {log.topic} ends before offset {each.end}", hint="plan again"
                )
            if state.log_start > each.start:
                gone = f"offsets {each.start} to {min(state.log_start, each.end)} of partition {each.partition}"
                raise Drifted(
                    f"retention has removed {gone} of {log.topic} since the plan",
                    hint="plan a window that the log still has",
                )

    def read(self, pin: InputPin, windows: Mapping[str, Interval]) -> Reading:
        """Rows of these chunks: decoded, of their event time, without tombstones and without what was quarantined."""
        log = log_of(pin)
        slices = {name: log.slices[name] for name in windows}
        whole = [each.window for each in log.slices.values() if each.window is not None]
        owned = [each.owned for each in slices.values()]
        job = LogJob(
            spark=self.spark,
            access=self.access,
            source=self.source,
            compacted="compact" in log.cleanup,
            owned=layers(owned),
            beside=layers((each.ranges for each in slices.values()), without=owned),
            scope=tuple(whole) if whole else None,
            read=tuple(windows.values()) if whole else None,
            own=tuple(each.window for each in slices.values() if each.window is not None) if whole else None,
        )
        return job.reading()

    def _identity(self, topic_id: str) -> TableIdentity:
        fields = read_log(self.spark, self.access, self.source, ()).schema.fields
        columns = [Column(name=each.name, type=each.dataType.simpleString(), nullable=each.nullable) for each in fields]
        return TableIdentity(
            name=f"kafka:{self.source.topic}",
            format="kafka",
            format_version=0,
            uuid=topic_id,
            columns=tuple(columns),
            partition_fields=(),
            spec_id=0,
        )


def log_of(pin: InputPin) -> LogPin:
    if pin.log is None:
        raise InvalidRequest(f"input {pin.name} was planned as a table", hint="plan again")
    return pin.log
