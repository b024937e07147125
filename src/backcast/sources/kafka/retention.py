"""Whether the log will still have what a run wants to read. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from backcast.model.log import ArchivePin, OffsetRange, PartitionState, Ranges, TopicFacts
from backcast.model.manifest import Survival

_WORST_FIRST = (
    Survival.GONE,
    Survival.PARTIAL,
    Survival.AT_RISK,
    Survival.UNKNOWN,
    Survival.OK,
    Survival.UNBOUNDED,
)


@dataclass(frozen=True, slots=True)
class PartitionSurvival:
    """What becomes of one partition's part of the window."""

    partition: int
    survival: Survival
    missing: OffsetRange | None = None
    """Offsets that are wanted and that the log no longer has."""
    survives_until: datetime | None = None
    """When time may begin to take what is left, at the earliest; None when nothing says that it will.

    Retention takes whole segments, by the largest record time in each: it is never earlier than this.
    """


def partition_survival(
    facts: TopicFacts, wanted: OffsetRange, first_record: datetime | None, now: datetime, run_time: timedelta
) -> PartitionSurvival:
    """Judge the wanted offsets of one partition for a run that starts now and takes that long.

    `first_record` is the record time of the first record at or after the first wanted offset that the log still has.
    """
    state = facts.partition(wanted.partition)
    if wanted.span == 0:
        return PartitionSurvival(wanted.partition, Survival.OK)
    missing = _missing(wanted, state)
    if missing == wanted:
        return PartitionSurvival(wanted.partition, Survival.GONE, missing)
    until = removal(facts, first_record)
    survival = Survival.PARTIAL if missing else _outlook(facts, first_record, until, now + run_time)
    return PartitionSurvival(wanted.partition, survival, missing, until)


def judged(
    facts: TopicFacts,
    ranges: Ranges,
    archive: ArchivePin | None,
    first_records: Mapping[int, datetime | None],
    now: datetime,
) -> tuple[list[PartitionSurvival], list[OffsetRange]]:
    """Every range, and what of it neither the log nor the archive has. Retention cannot touch what is archived."""
    taken = {} if archive is None else {each.partition: each for each in archive.part(ranges)}
    survivals, missing = [], []
    for wanted in ranges:
        ours = taken.get(wanted.partition)
        rest = wanted if ours is None else _range(wanted.partition, ours.end, wanted.end)
        found = partition_survival(facts, rest, first_records.get(wanted.partition), now, timedelta())
        lost = [] if found.missing is None else [found.missing]
        if ours is not None and ours.start > wanted.start:
            lost.insert(0, _range(wanted.partition, wanted.start, ours.start))
        if ours is not None and lost:
            found = replace(found, survival=Survival.PARTIAL)
        survivals.append(found)
        missing += lost
    return survivals, missing


def forgotten(
    facts: TopicFacts,
    ranges: Ranges,
    first_records: Mapping[int, datetime | None],
    since: datetime,
    now: datetime,
    held: Mapping[int, OffsetRange] | None = None,
    *,
    only_by_time: bool = True,
) -> Ranges:
    """Offsets that may have held records of that time or later, and that neither the log nor the archive has.

    A lookup of a time that the log has forgotten finds the log's start, as if nothing had been there before. Where time
    alone removes records, what it cannot have removed yet is not suspected: an idle partition begins late without
    having lost anything. Without `only_by_time` it is: somebody may have deleted records, or changed the retention.
    """
    removed_by_now = removal(facts, since)
    young = facts.retention_ms is not None and (removed_by_now is None or removed_by_now >= now)
    kept = young and facts.retention_bytes is None and only_by_time
    found = []
    for each in ranges:
        state = facts.partition(each.partition)
        if state is None or kept:
            continue
        before, begin = _begin(state, each, (held or {}).get(each.partition))
        first = first_records.get(each.partition)
        if before < begin and each.start <= begin and (first is None or first > since):
            found.append(_range(each.partition, before, begin))
    return tuple(found)


def _begin(state: PartitionState, asked: OffsetRange, held: OffsetRange | None) -> tuple[int, int]:
    """The first offset that anybody has of what holds the asked ones, and from where on those before are missing."""
    if held is None:
        return 0, state.log_start
    if held.end < state.log_start <= asked.start:
        return held.end, state.log_start
    return 0, min(held.start, state.log_start)


def removal(facts: TopicFacts, first_record: datetime | None) -> datetime | None:
    """When time may remove that record, at the earliest; None when time removes nothing or the record is not known."""
    if "delete" not in facts.cleanup or facts.retention_ms is None or first_record is None:
        return None
    try:
        return first_record + timedelta(milliseconds=facts.retention_ms)
    except OverflowError:
        return None


def worst(each: Iterable[Survival]) -> Survival:
    """What to say about all partitions in one word; nothing at all is OK."""
    found = set(each)
    return next((survival for survival in _WORST_FIRST if survival in found), Survival.OK)


def _range(partition: int, start: int, end: int) -> OffsetRange:
    return OffsetRange(partition=partition, start=start, end=end)


def _missing(wanted: OffsetRange, state: PartitionState | None) -> OffsetRange | None:
    log_start = wanted.end if state is None else state.log_start
    if log_start <= wanted.start:
        return None
    return OffsetRange(partition=wanted.partition, start=wanted.start, end=min(log_start, wanted.end))


def _outlook(facts: TopicFacts, first: datetime | None, until: datetime | None, needed: datetime) -> Survival:
    if not facts.cleanup:
        # The settings could not be read.
        return Survival.UNKNOWN
    if "delete" not in facts.cleanup or (facts.retention_ms is None and facts.retention_bytes is None):
        return Survival.UNBOUNDED
    if until is not None and until <= needed:
        return Survival.AT_RISK
    # How soon a log grows to its largest size depends on what producers will write.
    by_size = facts.retention_bytes is not None
    return Survival.UNKNOWN if by_size or first is None else Survival.OK
