"""A topic as an input: literal offsets resolved once, checked before they are read, and proven after."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from backcast.errors import Drifted, InvalidRequest
from backcast.model.log import (
    LeftToStream,
    LogPin,
    LogSlice,
    OffsetRange,
    PinnedPartition,
    Ranges,
    TopicFacts,
    before,
    behind,
    cut,
    hull,
    owned_slices,
    span,
)
from backcast.model.manifest import InputPin, Survival
from backcast.model.pieces import coarse, layers, pieces
from backcast.model.request import Kind, Request
from backcast.model.scope import Predicate, during
from backcast.model.source import KafkaAccess, LogSource
from backcast.model.table import Column, TableIdentity
from backcast.model.time import Interval
from backcast.ports import Reading
from backcast.sources.kafka.archive import Archived, KafkaArchive, as_archived
from backcast.sources.kafka.asked import asked_ranges, without_event_time
from backcast.sources.kafka.job import LogJob
from backcast.sources.kafka.ranges import moved
from backcast.sources.kafka.read import read_log
from backcast.sources.kafka.retention import PartitionSurvival, forgotten, judged, worst
from backcast.sources.kafka.spelling import format_ranges
from backcast.sources.kafka.topic import KafkaTopic
from backcast.sources.kafka.whole import Recorded, Whole, look, nothing_recorded
from backcast.sources.kafka.writers import Schemas, find_schemas

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RECORDS_A_CHUNK = 2_000_000
_PIECES = 8
"""Of one partition at most, each read on its own; scattered offsets are read with what lies between them."""
_BYTES_A_RECORD = 256
"""A guess: brokers tell how many records there are, not how big."""


@dataclass(frozen=True, slots=True)
class KafkaInput:
    """The port Input over one topic."""

    name: str
    source: LogSource
    access: KafkaAccess
    spark: SparkSession
    recorded: Recorded = nothing_recorded
    stream: str = ""
    """One that adds rows of this topic to the same table, if there is one."""
    position: Callable[[], Mapping[int, int] | None] = lambda: None

    def beside(self, stream: str, position: Callable[[], Mapping[int, int] | None]) -> KafkaInput:
        return replace(self, stream=stream, position=position)

    @property
    def archive(self) -> KafkaArchive | None:
        return KafkaArchive(self.spark, self.source, self.source.archive) if self.source.archive else None

    @property
    def topic(self) -> KafkaTopic:
        return KafkaTopic(self.access, self.source.topic, self.source.isolation)

    def identity(self) -> TableIdentity:
        return self._identity(self.topic.facts().topic_id)

    def pin(self, windows: Mapping[str, Interval], now: datetime) -> InputPin:
        """For each chunk the offsets that hold its event time, with the declared slack on both sides."""
        if self.source.time is None:
            raise without_event_time(self.source)
        whole = self.whole()
        slack = (self.source.slack_before, self.source.slack_after)
        found = whole.topic.window_ranges(whole.facts, windows, slack, to_end=self.source.to_end)
        since = moved(min(each.start for each in windows.values()), -slack[0])
        # Asked after the log, and after the table was: what either has of the stream by now, this has too.
        position = self.position()
        shared = {name: each if position is None else before(each, position) for name, each in found.items()}
        slices = {name: (window, shared[name]) for name, window in windows.items()}
        pin = self.pinned(whole, owned_slices(slices), now, since)
        return leaving(pin, self.left(hull(found.values()), position))

    def left(self, ranges: Ranges, position: Mapping[int, int] | None) -> LeftToStream | None:
        """What of it the stream has still to read."""
        found = () if position is None else behind(ranges, position)
        return LeftToStream(stream=self.stream, ranges=found) if found else None

    def pin_offsets(self, request: Request, window: Interval | None, now: datetime, most: int) -> InputPin:
        """Offsets that start below the log's and the archive's are missing ones; what is left is cut."""
        whole = self.whole()
        exact, since = asked_ranges(whole.topic, whole.facts, self.source, request, window)
        several = len(exact) > len({each.partition for each in exact})
        ranges = coarse([exact], _PIECES) if several else exact
        parts = max(1, min(most, -(-span(ranges) // _RECORDS_A_CHUNK)))
        width = len(str(parts))
        slices = {
            f"slice-{number:0{width}}": LogSlice(
                ranges=each, owned=each, window=window, only=exact if span(exact) != span(ranges) else ()
            )
            for number, each in enumerate(cut(ranges, parts), 1)
        }
        pin = self.pinned(whole, slices, now, since)
        return _handing_over(pin, ranges, whole.facts) if request.kind is Kind.BOOTSTRAP else pin

    def whole(self) -> Whole:
        """The log and the archive as they are now."""
        return look(self.topic, self.source, self.archive, self.recorded)

    def pinned(self, whole: Whole, slices: Mapping[str, LogSlice], now: datetime, since: datetime | None) -> InputPin:
        """The pin of what these chunks read; `since` is the earliest record time that was looked up, if one was."""
        ranges = hull(each.ranges for each in slices.values())
        starts: dict[int, int] = {}
        for each in (every for one in slices.values() for every in one.ranges):
            starts[each.partition] = min(each.start, starts.get(each.partition, each.start))
        archive = whole.pinned(ranges)
        rest = ranges if archive is None else archive.rest(ranges)
        first = self.topic.record_times({**starts, **{each.partition: each.start for each in rest}})
        survivals, missing = judged(whole.log, ranges, archive, first, now)
        survival = worst(each.survival for each in survivals)
        doubtful: Ranges = ()
        if since is not None:
            asked = tuple(OffsetRange(partition=each, start=start, end=start) for each, start in starts.items())
            times = {**first, **whole.archived_times(starts)}
            lost = forgotten(whole.log, asked, times, since, now, whole.held) + whole.holes_before(starts)
            doubtful = forgotten(whole.log, asked, times, since, now, whole.held, only_by_time=False)
            missing += lost
            survival = (Survival.PARTIAL if span(ranges) else Survival.GONE) if lost else survival
        schemas = find_schemas(self.source, self.access)
        read = sum(map(span, layers(each.ranges for each in slices.values())))
        return InputPin(
            name=self.name,
            dataset=self.source.name,
            identity=self._identity(whole.log.topic_id, schemas),
            version=format_ranges(ranges),
            windowed=True,
            survival=survival,
            survives_until=min((each.survives_until for each in survivals if each.survives_until), default=None),
            files=0,
            rows=read,
            bytes=read * _BYTES_A_RECORD,
            log=self._log(whole.log, survivals, ranges, slices).model_copy(
                update={
                    "missing": tuple(missing),
                    "doubtful": () if missing else doubtful,
                    "archive": archive,
                    "schemas": schemas.pins(),
                }
            ),
        )

    def _log(
        self,
        facts: TopicFacts,
        survivals: Sequence[PartitionSurvival],
        ranges: Ranges,
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
                for each, one in zip(ranges, survivals, strict=True)
            ),
            to_end=self.source.to_end,
            slices=dict(slices),
        )

    def check(self, pin: InputPin, windows: Mapping[str, Interval]) -> None:
        """What other chunks have staged already may be gone from the log."""
        log = log_of(pin)
        find_schemas(self.source, self.access, log.schemas)
        facts = self.topic.facts()
        if facts.topic_id != log.topic_id:
            raise Drifted(
                f"topic {log.topic} was deleted and made again since the plan: its offsets mean other records",
                hint="plan again",
            )
        needed = hull(each.ranges for name, each in log.slices.items() if name in windows)
        for each in needed if log.archive is None else log.archive.rest(needed):
            if not each.span:
                continue
            state = facts.partition(each.partition)
            if state is None or state.log_end < each.end:
                raise Drifted(
                    f"partition {each.partition} of {log.topic} ends before offset {each.end}", hint="plan again"
                )
            if state.log_start > each.start:
                gone = f"offsets {each.start} to {min(state.log_start, each.end)} of partition {each.partition}"
                raise Drifted(
                    f"retention has removed {gone} of {log.topic} since the plan",
                    hint="plan a window that the log still has, or one that an archive has",
                )
        archived = self._archived(log)
        if archived is not None:
            archived.archive.check(archived.pin)

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
            schemas=find_schemas(self.source, self.access, log.schemas),
            owned=layers(owned),
            beside=layers((each.ranges for each in slices.values()), without=owned),
            scope=tuple(whole) if whole else None,
            read=tuple(windows.values()) if whole else None,
            own=tuple(each.window for each in slices.values() if each.window is not None) if whole else None,
            archived=self._archived(log),
            only=pieces(each.only for each in slices.values()),
        )
        found = job.reading()
        return replace(found, rows=as_archived(found.rows, log.topic_id)) if self.source.to_archive else found

    def placed(self, pin: InputPin, windows: Mapping[str, Interval]) -> Mapping[str, Predicate] | None:
        if self.source.time is None or not log_of(pin).by_time:
            return None
        return {name: during((self.source.time,), (window,)) for name, window in windows.items()}

    def _archived(self, log: LogPin) -> Archived | None:
        if log.archive is None or not log.archive.ranges:
            return None
        if self.archive is None:
            raise Drifted(
                f"offsets of {log.topic} were planned from the archive {log.archive.place}, which is not declared",
                hint=f"declare `archive` under sources.{self.source.name}, or plan again",
            )
        return Archived(self.archive, log.archive, log.topic_id)

    def _identity(self, topic_id: str, schemas: Schemas | None = None) -> TableIdentity:
        fields = read_log(self.spark, self.access, self.source, (), schemas).schema.fields
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


def _handing_over(pin: InputPin, ranges: Ranges, facts: TopicFacts) -> InputPin:
    """With the position at which a stream goes on; it needs one for every partition."""
    ends = {each.partition: each.end for each in ranges}
    unknown = [each.partition for each in facts.partitions if each.partition not in ends]
    if unknown:
        raise InvalidRequest(
            f"a bootstrap reads every partition of {facts.topic}, and partition {unknown[0]} is not asked for",
            hint="use --offsets earliest, or name each of them",
        )
    return pin.model_copy(update={"log": log_of(pin).model_copy(update={"hand_over": ends})})


def leaving(pin: InputPin, left: LeftToStream | None) -> InputPin:
    return pin if left is None else pin.model_copy(update={"log": log_of(pin).model_copy(update={"left": left})})


def log_of(pin: InputPin) -> LogPin:
    if pin.log is None:
        raise InvalidRequest(f"input {pin.name} was planned as a table", hint="plan again")
    return pin.log
