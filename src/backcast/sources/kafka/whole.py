"""A topic as a plan sees it: its log and its archive as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from backcast.model.coverage import Coverage
from backcast.model.log import ArchivePin, OffsetRange, PartitionState, Ranges, TopicFacts, hull
from backcast.sources.kafka.archive_look import extents, first_holes, first_offsets, last_offsets, parts
from backcast.sources.kafka.topic import KafkaTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.source import LogSource
    from backcast.sources.kafka.archive import KafkaArchive

Held = Mapping[int, OffsetRange]
"""From the first to the last offset that an archive has of each partition."""

Recorded = Callable[[str], Iterable[Coverage]]
"""The proofs of runs of ours that have archived a part of the topic with that id."""


def nothing_recorded(topic_id: str) -> Iterable[Coverage]:
    """For who keeps no record of it."""
    del topic_id
    return ()


@dataclass(frozen=True, slots=True)
class Whole:
    """The log's facts, what is archived, and where both meet."""

    topic: KafkaTopic
    """Whose lookups find what is archived too."""
    log: TopicFacts
    leaves_gaps: bool
    """Offsets without a record are nothing unusual in the topic."""
    held: Held = field(default_factory=dict)
    pin: ArchivePin | None = None
    """The archive as it is now."""
    records: DataFrame | None = None
    passed: Coverage = field(default_factory=Coverage)
    """What runs of ours have archived, in a topic that leaves gaps."""
    counts: Mapping[int, int] = field(default_factory=dict)
    """How many records of each partition are archived."""

    @property
    def facts(self) -> TopicFacts:
        """As if the log began where the archive does."""
        return replace(self.log, partitions=tuple(self._joined(each) for each in self.log.partitions))

    def pinned(self, ranges: Ranges) -> ArchivePin | None:
        """The archive with what is to be read from it. Where it lacks what the log still has, the log takes over."""
        if self.pin is None or self.records is None:
            return self.pin
        taken = tuple(each for each in (taken_range(self.log, self.held, one) for one in ranges) if each is not None)
        found = parts(self.records, taken)
        short = tuple(
            each for each in taken if each.partition not in found or found[each.partition].records < each.span
        )
        if self.leaves_gaps:
            holes = tuple(each for each in taken if self._lacks_some(each.partition))
        else:
            holes = first_holes(self.records, short) if short else ()
        starts = {each.partition: each.start for each in holes if self._in_log(each)}
        taken = tuple(
            OffsetRange(partition=each.partition, start=each.start, end=starts.get(each.partition, each.end))
            for each in taken
        )
        return self.pin.model_copy(
            update={
                "ranges": tuple(each for each in taken if each.span),
                "holes": tuple(each for each in holes if each.partition not in starts),
            }
        )

    def archived_times(self, starts: Mapping[int, int]) -> dict[int, datetime | None]:
        """Record times at those of the offsets that are archived."""
        if self.records is None:
            return {}
        inside = tuple(
            OffsetRange(partition=number, start=start, end=start + 1)
            for number, start in starts.items()
            if number in self.held and self.held[number].start <= start < self.held[number].end
        )
        return {number: each.first_time for number, each in parts(self.records, inside).items()} if inside else {}

    def holes_before(self, starts: Mapping[int, int]) -> Ranges:
        """Offsets right before these that neither of both has: a lookup of a time that they held finds what follows."""
        states = {each.partition: each.log_start for each in self.log.partitions}
        before = {
            number: start - 1
            for number, start in starts.items()
            if number in self.held
            and self.held[number].start < start < self.held[number].end
            and start <= states.get(number, start)
        }
        if self.records is None or not before:
            return ()
        if self.leaves_gaps:
            last = last_passed(self.passed, before) if self.passed.partitions else before
        else:
            last = last_offsets(self.records, before)
        return tuple(
            OffsetRange(partition=number, start=last.get(number, -1) + 1, end=offset + 1)
            for number, offset in before.items()
            if last.get(number, -1) < offset
        )

    def _lacks_some(self, partition: int) -> bool:
        """Whether fewer records are archived than runs of ours have copied, if they copied all of them."""
        ours = [each for each in self.passed.partitions if each.partition == partition]
        held = self.held[partition]
        if len(ours) != 1 or ours[0].start > held.start or ours[0].end < held.end:
            return False
        return self.counts.get(partition, 0) < ours[0].records

    def _joined(self, state: PartitionState) -> PartitionState:
        held = self.held.get(state.partition)
        return state if held is None else replace(state, log_start=min(state.log_start, held.start))

    def _in_log(self, hole: OffsetRange) -> bool:
        state = self.log.partition(hole.partition)
        return state is not None and state.log_start <= hole.start


@dataclass(frozen=True, slots=True)
class ArchivedTopic(KafkaTopic):
    """A topic whose lookups of record times go on in the archive where the log has forgotten."""

    records: DataFrame = field(kw_only=True)
    below: Mapping[int, int] = field(kw_only=True)
    """Where the log starts, of partitions that are archived from before that."""

    def offsets_at_each(self, instants: Iterable[datetime]) -> dict[datetime, dict[int, int | None]]:
        return self._and_archived(self._log.offsets_at_each(instants))

    def ends_at_each(self, instants: Iterable[datetime]) -> dict[datetime, dict[int, int | None]]:
        return self._and_archived(self._log.ends_at_each(instants))

    @property
    def _log(self) -> KafkaTopic:
        return KafkaTopic(self.access, self.topic, self.isolation)

    def _and_archived(self, found: dict[datetime, dict[int, int | None]]) -> dict[datetime, dict[int, int | None]]:
        archived = first_offsets(self.records, self.below, found)
        return {instant: {**each, **archived[instant]} for instant, each in found.items()}


def look(topic: KafkaTopic, source: LogSource, archive: KafkaArchive | None, recorded: Recorded) -> Whole:
    """Asks the brokers, and the archive if there is one."""
    log = topic.facts()
    whole = Whole(topic, log, source.transactional or "compact" in log.cleanup)
    pin = None if archive is None else archive.pin()
    if archive is None or pin is None:
        return whole
    records = archive.records(pin, log.topic_id)
    found, counts = extents(records)
    passed = sum(recorded(log.topic_id), Coverage()) if whole.leaves_gaps else Coverage()
    held = cut_held(log, with_gaps(found, passed))
    starts = {each.partition: each.log_start for each in log.partitions}
    below = {number: starts[number] for number, each in held.items() if each.start < starts[number]}
    joined = ArchivedTopic(topic.access, topic.topic, topic.isolation, records=records, below=below)
    return replace(whole, topic=joined, held=held, pin=pin, records=records, passed=passed, counts=counts)


def taken_range(log: TopicFacts, held: Held, wanted: OffsetRange) -> OffsetRange | None:
    """What of it comes from the archive: all that is archived, unless only the log has the start."""
    ours, state = held.get(wanted.partition), log.partition(wanted.partition)
    if ours is None or (ours.start > wanted.start and state is not None and state.log_start <= wanted.start):
        return None
    start, end = max(wanted.start, ours.start), min(wanted.end, ours.end)
    return OffsetRange(partition=wanted.partition, start=start, end=end) if start < end else None


def with_gaps(found: Held, passed: Coverage) -> Held:
    """Also offsets without a record that runs of ours have passed, next to those that are there."""
    joined = dict(found)
    for each in sorted(passed.ranges, key=lambda one: one.start):
        ours = joined.get(each.partition, each)
        if each.start <= ours.end and ours.start <= each.end:
            joined[each.partition] = hull([(ours,), (each,)])[0]
    return joined


def last_passed(passed: Coverage, offsets: Mapping[int, int]) -> dict[int, int]:
    """The last offset, up to the given one, that a run has archived, of each partition that has one."""
    found: dict[int, int] = {}
    for each in (one for one in passed.ranges if one.partition in offsets):
        if each.start <= offsets[each.partition]:
            last = min(each.end - 1, offsets[each.partition])
            found[each.partition] = max(last, found.get(each.partition, last))
    return found


def cut_held(log: TopicFacts, held: Held) -> Held:
    """Nothing beyond the log's end: whatever is there, the log does not know it."""
    ends = {each.partition: each.log_end for each in log.partitions}
    return {
        number: OffsetRange(partition=number, start=each.start, end=min(each.end, ends[number]))
        for number, each in held.items()
        if number in ends and each.start < ends[number]
    }
