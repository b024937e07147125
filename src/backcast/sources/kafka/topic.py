"""A topic as the brokers have it: what is in its log, where a moment lies, how long records stay."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from backcast.errors import UnknownName
from backcast.model.log import Isolation, PartitionState, Ranges, TopicFacts
from backcast.sources.kafka.admin import ANSWER_SECONDS, REACH_SECONDS, Questions, questions
from backcast.sources.kafka.complaints import Complaint
from backcast.sources.kafka.ranges import Slack, event_ranges, moved
from backcast.sources.kafka.record_times import Place, first_records, milliseconds_of

if TYPE_CHECKING:
    from confluent_kafka.admin import OffsetSpec

    from backcast.model.source import KafkaAccess
    from backcast.model.time import Interval

_CLOSE = 0.6
_SETTLING = 0.1
_URL_SAFE = str.maketrans("+/", "-_")


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """Asks about one topic; never writes, and never reads or commits offsets of a consumer group.

    Every method connects, asks and closes. Raises UnknownName for a topic that is not there and Unavailable, within
    seconds, where nobody answers.
    """

    access: KafkaAccess
    topic: str
    isolation: Isolation = Isolation.COMMITTED

    def facts(self) -> TopicFacts:
        doing = f"describing topic {self.topic}"
        with questions(self.access, doing) as ask:
            topic_id, partitions = self._described(ask, doing)
            starts, ends = self._bounds(ask, partitions, doing)
            config = self._config(ask, doing)
        return TopicFacts(
            topic=self.topic,
            topic_id=topic_id,
            partitions=_states(starts, ends),
            cleanup=frozenset(filter(None, config.get("cleanup.policy", "").split(","))),
            retention_ms=_limit(config.get("retention.ms")),
            retention_bytes=_limit(config.get("retention.bytes")),
            timestamp_type=config.get("message.timestamp.type", ""),
        )

    def log(self) -> tuple[PartitionState, ...]:
        """Where each partition begins and ends: the cheapest question."""
        doing = f"looking up the ends of topic {self.topic}"
        with questions(self.access, doing) as ask:
            _, partitions = self._described(ask, doing)
            starts, ends = self._bounds(ask, partitions, doing)
        return _states(starts, ends)

    def offsets_at(self, instant: datetime) -> dict[int, int | None]:
        """Where records of the instant or later begin in each partition: none of them lies before. None: there is none.

        Record times need not be in order, so records that are earlier may follow.
        """
        return self.offsets_at_each([instant])[instant]

    def offsets_at_each(self, instants: Iterable[datetime]) -> dict[datetime, dict[int, int | None]]:
        """The same for many instants, over one connection."""
        doing = f"looking up times in topic {self.topic}"
        with questions(self.access, doing) as ask:
            _, partitions = self._described(ask, doing)
            return {instant: self._at(ask, partitions, instant, doing) for instant in instants}

    def ends_at(self, instant: datetime) -> dict[int, int | None]:
        """The same as `offsets_at`, for the end of a window: None also where only a transaction's marker was found.

        A marker carries the time of its commit. When old records are written in transactions it seems later than all
        that follows, which would be left out.
        """
        return self.ends_at_each([instant])[instant]

    def ends_at_each(self, instants: Iterable[datetime]) -> dict[datetime, dict[int, int | None]]:
        found = self.offsets_at_each(instants)
        markers = self._without_record({(number, each) for one in found.values() for number, each in one.items()})
        return {
            instant: {number: None if (number, each) in markers else each for number, each in one.items()}
            for instant, one in found.items()
        }

    def window_ranges(
        self, facts: TopicFacts, windows: Mapping[str, Interval], slack: Slack, *, to_end: bool = False
    ) -> dict[str, Ranges]:
        """`event_ranges` of every window, with as few questions as possible."""
        starts = self.offsets_at_each({moved(each.start, -slack[0]) for each in windows.values()})
        ends = {} if to_end else self.ends_at_each({moved(each.end, slack[1]) for each in windows.values()})
        lookups = (starts.__getitem__, ends.__getitem__)
        return {name: event_ranges(facts, lookups, window, slack, to_end=to_end) for name, window in windows.items()}

    def record_time(self, partition: int, offset: int) -> datetime | None:
        """The time of the first record at or after the offset; None where there is none."""
        return self.record_times({partition: offset}).get(partition)

    def record_times(self, offsets: Mapping[int, int]) -> dict[int, datetime | None]:
        """The same for many partitions, over one connection. A partition that the topic lacks has none."""
        doing = f"looking up records of topic {self.topic}"
        with questions(self.access, doing) as ask:
            _, partitions = self._described(ask, doing)
            starts, ends = self._bounds(ask, [each for each in partitions if each in offsets], doing)
        inside = [(each, max(starts[each], offsets[each])) for each in starts if offsets[each] < ends[each]]
        found = first_records(self.access, self.topic, self.isolation, inside)
        times = {number: each.time for (number, _), each in found.items() if each is not None}
        return {number: times.get(number) for number in offsets}

    def _at(self, ask: Questions, partitions: list[int], instant: datetime, doing: str) -> dict[int, int | None]:
        from confluent_kafka.admin import OffsetSpec

        found = self._offsets(ask, partitions, OffsetSpec.for_timestamp(milliseconds_of(instant)), doing)
        return {number: offset if offset >= 0 else None for number, offset in found.items()}

    def _without_record(self, places: Iterable[tuple[int, int | None]]) -> set[Place]:
        """Those of the offsets that hold no record, aborted ones included."""
        known = [(number, offset) for number, offset in places if offset is not None]
        records = first_records(self.access, self.topic, Isolation.UNCOMMITTED, known)
        return {place for place, each in records.items() if each is None or each.offset != place[1]}

    def _described(self, ask: Questions, doing: str) -> tuple[str, list[int]]:
        """Topic id and partitions. Describing, unlike asking for metadata, never makes a topic."""
        from confluent_kafka import KafkaException, TopicCollection

        asked = ask.client.describe_topics(TopicCollection([self.topic]), request_timeout=REACH_SECONDS)
        try:
            found = ask.answer(asked[self.topic], doing, REACH_SECONDS + 1)
        except KafkaException as error:
            if Complaint.of(error).name in ("UNKNOWN_TOPIC_OR_PART", "TOPIC_EXCEPTION"):
                raise self._unknown(ask) from None
            raise
        # As Kafka's own tools write it; this client takes the other alphabet.
        return str(found.topic_id).translate(_URL_SAFE), sorted(each.id for each in found.partitions)

    def _unknown(self, ask: Questions) -> UnknownName:
        known = [name for name in ask.client.list_topics(timeout=ANSWER_SECONDS).topics if not name.startswith("__")]
        close = get_close_matches(self.topic, known, n=3, cutoff=_CLOSE)
        hint = f"did you mean {' or '.join(close)}?" if close else "see `topic` of the source in backcast.yaml"
        message = f"Kafka at {self.access.servers} has no topic {self.topic!r}"
        return UnknownName(message, hint=hint, kind="topic", name=self.topic)

    def _bounds(self, ask: Questions, partitions: list[int], doing: str) -> tuple[dict[int, int], dict[int, int]]:
        """Log start and end. The start first: the log may move on in between, and must not seem to run backwards."""
        from confluent_kafka.admin import OffsetSpec

        starts = self._offsets(ask, partitions, OffsetSpec.earliest(), doing)
        return starts, self._offsets(ask, partitions, OffsetSpec.latest(), doing)

    def _offsets(self, ask: Questions, partitions: list[int], which: OffsetSpec, doing: str) -> dict[int, int]:
        from confluent_kafka import IsolationLevel, KafkaException, TopicPartition

        if not partitions:
            return {}
        committed = self.isolation is Isolation.COMMITTED
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        wanted = {TopicPartition(self.topic, each): which for each in partitions}
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            asked = ask.client.list_offsets(wanted, isolation_level=level, request_timeout=ANSWER_SECONDS)
            try:
                return {each.partition: ask.answer(future, doing).offset for each, future in asked.items()}
            except KafkaException as error:
                if not Complaint.of(error).passing or time.monotonic() >= deadline:
                    raise
                time.sleep(_SETTLING)

    def _config(self, ask: Questions, doing: str) -> dict[str, str]:
        """The topic's settings; empty where this user may not see them, which leaves survival unknown."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import ConfigResource, ResourceType

        resource = ConfigResource(ResourceType.TOPIC, self.topic)
        asked = ask.client.describe_configs([resource], request_timeout=ANSWER_SECONDS)
        try:
            (entries,) = (ask.answer(each, doing) for each in asked.values())
        except KafkaException as error:
            if Complaint.of(error).about_rights:
                return {}
            raise
        return {name: entry.value for name, entry in entries.items() if entry.value is not None}


def _states(starts: Mapping[int, int], ends: Mapping[int, int]) -> tuple[PartitionState, ...]:
    return tuple(PartitionState(each, start, max(start, ends[each])) for each, start in sorted(starts.items()))


def _limit(value: Any) -> int | None:
    """Kafka writes -1 for: no limit."""
    return None if value is None or int(value) < 0 else int(value)
