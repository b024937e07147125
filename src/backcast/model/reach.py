"""How far a topic should be in a dataset, and which of the offsets that no row carries are therefore missing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backcast.model.log import OffsetRange, PartitionState

if TYPE_CHECKING:
    from backcast.model.log import LogPin

Mark = tuple[int, int]
"""A partition and an offset at which a hole begins or ends, though no row is there."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What streams and runs have read of a topic by now, and what the log has."""

    log: Mapping[int, PartitionState]
    begins: Mapping[int, int]
    """From where on rows are expected; a partition that is left out began nobody knows where."""
    ends: Mapping[int, int]
    """Up to where streams, and runs of offsets, have read: what lies behind is pending."""
    scanned: Mapping[int, int] = field(default_factory=dict)
    """Up to where runs of windows have read: they leave out records of other windows, so this counts only for a
    partition of which the dataset has no row."""
    streamed: bool = False
    """A stream fills the dataset: a partition that it has not come to is pending."""

    def marks(self) -> tuple[Mark, ...]:
        found = {(partition, end) for partition, end in (*self.ends.items(), *self.scanned.items())}
        for number, each in self.log.items():
            begin = self.begins.get(number)
            found.add((number, each.log_end))
            if begin is not None:
                # What the log has lost and what it has are two holes.
                found |= {(number, begin), (number, max(begin, each.log_start))}
        return tuple(sorted(found))

    def is_pending(self, hole: OffsetRange, *, carried: bool) -> bool:
        """Whether it is only not read yet. `carried`: some row is of that partition."""
        state, end = self.log.get(hole.partition), self.ends.get(hole.partition)
        if state is None or hole.start < state.log_start or hole.end > state.log_end:
            return False
        if end is not None:
            return hole.start >= end
        if carried or self.streamed:
            return hole.end == state.log_end
        return hole.start >= self.scanned.get(hole.partition, hole.end)


def begins_of(starting: str, topic: str, log: Mapping[int, PartitionState]) -> dict[int, int]:
    """Where a stream without a checkpoint begins: earliest, latest, or offsets as Spark writes them."""
    import json

    starts = {number: each.log_start for number, each in log.items()}
    if starting == "earliest":
        return starts
    try:
        literal = {int(key): int(value) for key, value in json.loads(starting)[topic].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
    earliest = {key: starts[key] for key, value in literal.items() if value == -2 and key in starts}
    return {key: value for key, value in literal.items() if value >= 0} | earliest


def read_by(pins: Iterable[LogPin]) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Where runs of offsets began and ended, and up to where runs of windows read, by partition."""
    begins: dict[int, int] = {}
    ends: dict[int, int] = {}
    scanned: dict[int, int] = {}
    for pin in pins:
        if pin.by_time:
            scanned |= {each.partition: max(each.end, scanned.get(each.partition, 0)) for each in pin.partitions}
            continue
        for each in (one for part in pin.slices.values() for one in (part.only or part.owned) if one.span):
            begins[each.partition] = min(each.start, begins.get(each.partition, each.start))
            ends[each.partition] = max(each.end, ends.get(each.partition, 0))
    return begins, ends, scanned
