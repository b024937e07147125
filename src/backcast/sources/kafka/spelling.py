"""Offsets as people and Spark write them.

0=100..200,0=300..310,1=50..          of these partitions; a side that is left out is the log's start or end
earliest, earliest..latest            every partition
{"orders":{"0":23,"1":-2}}            as Spark writes it: from there to the log's end; -2 earliest, -1 latest
{"orders":{"0":23}}..{"orders":{"0":40}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from backcast.errors import InvalidRequest, UnknownName
from backcast.model.log import OffsetRange, PartitionState, Ranges, TopicFacts

Bound = int | str
"""An offset, `earliest` or `latest`."""
_WORDS = ("earliest", "latest")
_SPARK_WORDS = {-2: "earliest", -1: "latest"}
_ITEM = re.compile(r"(?P<partition>\d+)=(?P<start>[^.]*)\.\.(?P<end>[^.]*)", re.ASCII)
_POSITION = re.compile(r"(?P<partition>\d+)=(?P<offset>\d{1,18})", re.ASCII)
_NUMBER = re.compile(r"\d{1,18}", re.ASCII)
_EXAMPLE = 'write 0=100..200,1=50.. or earliest..latest, or what Spark writes: {"topic":{"0":100}}'


@dataclass(frozen=True, slots=True)
class AskedOffsets:
    """Bounds by partition, before anybody asked the brokers. None: the same bounds for every partition."""

    bounds: tuple[tuple[int, tuple[Bound, Bound]], ...] | None
    every: tuple[Bound, Bound] = ("earliest", "latest")


def parse_offsets(text: str, topic: str) -> AskedOffsets:
    """Raises InvalidRequest, which names the part that cannot be read."""
    text = text.strip()
    if text.startswith("{") or text.split("..")[0] in _WORDS:
        return _sides(text, topic)
    return AskedOffsets(_items(text))


def resolve_offsets(asked: AskedOffsets, facts: TopicFacts) -> Ranges:
    """Literal offsets. A start below the log's is kept, for retention to judge; an end above it is refused.

    Raises UnknownName for a partition that the topic does not have and InvalidRequest for bounds out of order, and for
    ranges of a partition that overlap.
    """
    known = {each.partition: each for each in facts.partitions}
    wanted = tuple((number, asked.every) for number in known) if asked.bounds is None else asked.bounds
    for number in sorted({number for number, _ in wanted} - set(known)):
        hint = f"it has {len(known)}, from 0"
        raise UnknownName(f"topic {facts.topic} has no partition {number}", hint=hint, kind="partition", name=number)
    found = [_resolved(bounds, known[number]) for number, bounds in wanted]
    in_order = sorted(found, key=lambda each: (each.partition, each.start, each.end))
    for one, other in pairwise(in_order):
        if one.partition == other.partition and other.start < one.end:
            both = f"{one.start}..{one.end} and {other.start}..{other.end}"
            raise InvalidRequest(f"partition {one.partition}: {both} overlap", hint="name every offset once")
    return tuple(in_order)


def format_ranges(ranges: Ranges) -> str:
    """`0=100..200,1=50..80`, which `parse_offsets` reads."""
    return ",".join(f"{each.partition}={each.start}..{each.end}" for each in ranges)


def parse_position(text: str, topics: Sequence[str]) -> dict[str, dict[int, int]]:
    """One literal offset for each partition: `0=100,1=50`, which needs a single topic, or as Spark writes it.

    Raises InvalidRequest, which names the part that cannot be read.
    """
    example = 'write 0=100,1=50 or what Spark writes: {"topic":{"0":100}}'
    if text.strip().startswith("{"):
        try:
            document = json.loads(text)
        except ValueError as error:
            raise InvalidRequest(f"offsets: {text!r} is not JSON", hint=example) from error
        for topic in document:
            if topic not in topics:
                raise UnknownName(f"the query reads no topic {topic!r}", hint=f"it reads {', '.join(topics)}")
        return {topic: _literals(spark_offsets(document, topic, "offsets"), topic, example) for topic in document}
    found: dict[int, int] = {}
    for position, item in enumerate(text.split(","), start=1):
        match = _POSITION.fullmatch(item.strip())
        if match is None:
            raise InvalidRequest(f"offsets, part {position}: {item.strip()!r} is not PARTITION=OFFSET", hint=example)
        found[int(match["partition"])] = int(match["offset"])
    if len(topics) != 1:
        hint = 'say which: {"topic":{"0":100}}'
        raise InvalidRequest(f"the query reads {len(topics)} topics: {', '.join(topics)}", hint=hint)
    return {topics[0]: found}


def _literals(offsets: dict[int, Bound], topic: str, example: str) -> dict[int, int]:
    if any(isinstance(each, str) for each in offsets.values()):
        raise InvalidRequest(f"offsets: those of topic {topic!r} are not all literal", hint=example)
    return {partition: offset for partition, offset in offsets.items() if isinstance(offset, int)}


def _items(text: str) -> tuple[tuple[int, tuple[Bound, Bound]], ...]:
    found: list[tuple[int, tuple[Bound, Bound]]] = []
    for position, item in enumerate(text.split(","), start=1):
        match = _ITEM.fullmatch(item.strip())
        if match is None or not _NUMBER.fullmatch(match["partition"]):
            raise InvalidRequest(
                f"offsets, part {position}: {item.strip()!r} is not PARTITION=START..END", hint=_EXAMPLE
            )
        number = int(match["partition"])
        place = f"offsets, part {position} (partition {number})"
        start, end = match["start"], match["end"]
        found.append((number, (_bound(start, "earliest", f"{place}, start"), _bound(end, "latest", f"{place}, end"))))
    return tuple(found)


def _bound(text: str, otherwise: str, place: str) -> Bound:
    word = text.strip() or otherwise
    if word in _WORDS:
        return word
    if not _NUMBER.fullmatch(word):
        raise InvalidRequest(f"{place}: {word!r} is not an offset", hint=_EXAMPLE)
    return int(word)


def _sides(text: str, topic: str) -> AskedOffsets:
    first, _, last = text.partition("..")
    start, end = _side(first, topic, "start"), _side(last or "latest", topic, "end")
    if isinstance(start, str):
        if isinstance(end, str):
            return AskedOffsets(None, (start, end))
        return AskedOffsets(tuple((number, (start, bound)) for number, bound in end.items()))
    if isinstance(end, str):
        return AskedOffsets(tuple((number, (bound, end)) for number, bound in start.items()))
    if set(start) != set(end):
        odd = min(set(start) ^ set(end))
        raise InvalidRequest(f"offsets: only one side names partition {odd}", hint="name the same on both sides")
    return AskedOffsets(tuple((number, (bound, end[number])) for number, bound in start.items()))


def _side(text: str, topic: str, place: str) -> str | dict[int, Bound]:
    if text in _WORDS:
        return text
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InvalidRequest(
            f"offsets, {place}: {text!r} is neither JSON nor earliest nor latest", hint=_EXAMPLE
        ) from error
    return spark_offsets(document, topic, f"offsets, {place}")


def spark_offsets(document: Any, topic: str, place: str) -> dict[int, Bound]:
    """What Spark writes about one topic: `{"topic":{"0":100}}`. Raises InvalidRequest, which begins with the place."""
    if not isinstance(document, dict) or not isinstance(document.get(topic), dict):
        raise InvalidRequest(f'{place}: there is no {{"{topic}": {{PARTITION: OFFSET}}}}', hint=_EXAMPLE)
    found: dict[int, Bound] = {}
    for name, offset in document[topic].items():
        if not _NUMBER.fullmatch(str(name)):
            raise InvalidRequest(f"{place}: {name!r} is not a partition", hint=_EXAMPLE)
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < -2:
            raise InvalidRequest(f"{place}, partition {name}: {offset!r} is not an offset", hint=_EXAMPLE)
        found[int(name)] = _SPARK_WORDS.get(offset, offset)
    return found


def _resolved(bounds: tuple[Bound, Bound], state: PartitionState) -> OffsetRange:
    words = {"earliest": state.log_start, "latest": state.log_end}
    start, end = (each if isinstance(each, int) else words[each] for each in bounds)
    where = f"partition {state.partition}"
    if end > state.log_end:
        hint = f"leave the end out for all that there is: {state.partition}={start}.."
        raise InvalidRequest(f"{where} ends at offset {state.log_end}, before {end}", hint=hint)
    if start > end:
        raise InvalidRequest(f"{where}: it would start at {start} and end before, at {end}", hint="swap the two")
    return OffsetRange(partition=state.partition, start=start, end=end)
