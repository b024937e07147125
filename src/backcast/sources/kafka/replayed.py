"""A topic that a streaming query reads on behalf of a run: pinned from the stream's position, proven by a scan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from backcast.model.coverage import Coverage
from backcast.model.log import LogSlice, OffsetRange, Ranges, before, hull
from backcast.model.manifest import InputPin
from backcast.model.scope import Predicate
from backcast.model.table import TableIdentity
from backcast.model.time import Interval
from backcast.ports import Reading
from backcast.sources.kafka.asked import without_event_time
from backcast.sources.kafka.input import KafkaInput, leaving, log_of
from backcast.sources.kafka.job import LogRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.log import TopicFacts


ANY = Interval(start=datetime(1, 1, 1, tzinfo=UTC), end=datetime(9999, 1, 1, tzinfo=UTC))
"""Offsets say what is read."""


@dataclass(frozen=True, slots=True)
class ReplayedInput:
    """The port Input over a topic that is replayed as a whole. Its first chunk answers for every offset."""

    topic: KafkaInput
    positions: Mapping[int, int]
    """From where; a partition that is not named, and all of them when none is, from where the windows begin."""
    ends: Mapping[int, int] = field(default_factory=dict)
    """Up to where, if that was decided by who reads."""

    def beside(self, stream: str, position: Callable[[], Mapping[int, int] | None]) -> ReplayedInput:
        return replace(self, topic=self.topic.beside(stream, position))

    def identity(self) -> TableIdentity:
        return self.topic.identity()

    def pin(self, windows: Mapping[str, Interval], now: datetime) -> InputPin:
        source = self.topic.source
        if source.time is None:
            raise without_event_time(source)
        whole, slack = self.topic.whole(), (source.slack_before, source.slack_after)
        found = whole.topic.window_ranges(whole.facts, windows, slack, to_end=source.to_end)
        first = min(windows, key=lambda name: windows[name].start)
        asked = self._from_position(hull(found.values()), whole.facts)
        position = self.topic.position()
        ranges = asked if position is None else before(asked, position)
        event_time = Interval(
            start=min(each.start for each in windows.values()), end=max(each.end for each in windows.values())
        )
        slices = {name: LogSlice(ranges=(), owned=()) for name in windows}
        slices[first] = LogSlice(ranges=ranges, owned=tuple(each for each in ranges if each.span), window=event_time)
        pin = leaving(self.topic.pinned(whole, slices, now, None), self.topic.left(asked, position))
        if not self.ends or pin.log is None:
            return pin
        # No lookup by time has chosen these offsets: no record can lie behind them and belong to what is computed.
        return pin.model_copy(update={"log": pin.log.model_copy(update={"to_end": True})})

    def check(self, pin: InputPin, windows: Mapping[str, Interval]) -> None:
        self.topic.check(pin, windows)

    def read(self, pin: InputPin, windows: Mapping[str, Interval]) -> Reading:
        """No rows: the query has them. The job of the first chunk tells what became of every offset."""
        log = pin.log
        answering = {} if log is None else {name: each for name, each in windows.items() if log.slices[name].owned}
        nothing = self.topic.read(pin, {}).rows
        if not answering:
            return Reading(nothing)
        found = self.topic.read(pin, answering).log
        return Reading(nothing, _Scanned(found.job, (), found.counted) if isinstance(found, LogRows) else found)

    def placed(self, pin: InputPin, windows: Mapping[str, Interval]) -> Mapping[str, Predicate] | None:
        return self.topic.placed(pin, windows)

    def records(self, pin: InputPin) -> DataFrame:
        """Rows of all pinned offsets, whatever their event time, also of those that only the archive has."""
        log = log_of(pin)
        whole = {name: each.model_copy(update={"window": None}) for name, each in log.slices.items() if each.owned}
        read = pin.model_copy(update={"log": log.model_copy(update={"slices": whole})})
        return self.topic.read(read, dict.fromkeys(whole, ANY)).rows

    def _from_position(self, ranges: Ranges, facts: TopicFacts) -> Ranges:
        ends = dict(self.ends) or {each.partition: each.end for each in ranges}
        starts = {each.partition: each.start for each in ranges} | dict(self.positions)
        pairs = [(each.partition, starts.get(each.partition, each.log_start)) for each in facts.partitions]
        return tuple(
            OffsetRange(partition=number, start=start, end=max(start, ends.get(number, start)))
            for number, start in pairs
        )


class _Scanned(LogRows):
    """Nothing was counted while rows went by: the query's batches are not this job's."""

    __slots__ = ()

    def proof(self) -> tuple[Coverage, int]:
        layers = [self.job.coverage(number, None)[0] for number in range(len(self.job.owned))]
        return sum(layers, Coverage()), self.job.handed_over()
