"""The documents that Structured Streaming keeps in a checkpoint, read from their text: query id, offsets, commits."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

OFFSETS_VERSIONS = ("v1", "v2")
COMMITS_VERSIONS = ("v1", "v2", "v3")
_PARTITION = re.compile(r"\d{1,9}", re.ASCII)

Position = Mapping[str, Mapping[int, int]]
"""Topic, partition, next offset: what a Kafka source says of itself."""


class Garbled(ValueError):
    """A document that Spark could not read either. `kind` is a word for it: empty, version, newer, json, shape."""

    def __init__(self, kind: str, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.kind = kind
        self.line = line


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """What one source of the query says: where it goes on."""

    name: str
    """Its number from 0, or the name that it was given."""
    line: int
    text: str
    """As Spark wrote it; `-` when the source has said nothing yet."""

    @property
    def kafka(self) -> Position | None:
        """By topic and partition, when that is what it says. None for other kinds of source."""
        try:
            document = json.loads(self.text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(document, dict) or not document:
            return None
        if not all(isinstance(each, dict) and each for each in document.values()):
            return None
        found: dict[str, dict[int, int]] = {}
        for topic, offsets in document.items():
            if not all(_PARTITION.fullmatch(name) and _whole(value) for name, value in offsets.items()):
                return None
            found[topic] = {int(name): value for name, value in sorted(offsets.items(), key=lambda item: int(item[0]))}
        return found


@dataclass(frozen=True, slots=True)
class Planned:
    """`offsets/N`: what batch N reads up to, written before the batch runs."""

    version: str
    watermark_ms: int
    """In force for this batch; 0 before any data, and in queries without one."""
    time_ms: int
    """Processing time of the batch."""
    conf: Mapping[str, str]
    """Settings that the query keeps, whatever the session says."""
    sources: tuple[SourceOffset, ...]
    header: str = field(repr=False, default="{}")
    """The line that holds watermark, time and settings."""

    @property
    def ends(self) -> dict[str, str]:
        """Up to where it reads each source. Named sources stand in any order."""
        return {each.name: each.text for each in self.sources}


@dataclass(frozen=True, slots=True)
class Committed:
    """`commits/N`: batch N is in the sink."""

    version: str
    watermark_ms: int
    """In force for the next batch."""
    state_ids: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """By operator, for each partition: ids of its state's newest files. Only in versions from v2."""


def read_id(text: str) -> str:
    """The id of the query, from `metadata`. Raises Garbled."""
    if not text.strip():
        raise Garbled("empty", "it is empty")
    found = _object(text, 1).get("id")
    try:
        return str(UUID(str(found)))
    except ValueError:
        raise Garbled("shape", f"its id {found!r} is no UUID") from None


def read_planned(text: str) -> Planned:
    """Raises Garbled, which names the line."""
    version, *lines = text.split("\n")
    _supported(version, OFFSETS_VERSIONS, "offsets")
    if not lines or not lines[0].strip():
        raise Garbled("empty", "it ends before the offsets of any source", 2)
    header = _object(lines[0], 2)
    # A line break at the end is one more source to nobody: Spark takes it too.
    rows = [(number, line) for number, line in enumerate(lines[1:], start=3) if line.strip()]
    if not rows:
        raise Garbled("shape", "it ends before the offsets of any source", 3)
    conf = header.get("conf") or {}
    if not isinstance(conf, dict):
        raise Garbled("shape", "its settings are no object", 2)
    return Planned(
        version,
        _milliseconds(header, "batchWatermarkMs", 2),
        _milliseconds(header, "batchTimestampMs", 2),
        {str(key): str(value) for key, value in conf.items()},
        tuple(_source(version, position, number, line) for position, (number, line) in enumerate(rows)),
        lines[0],
    )


def read_committed(text: str) -> Committed:
    """Raises Garbled, which names the line."""
    version, *lines = text.split("\n")
    _supported(version, COMMITS_VERSIONS, "commits")
    if not lines or not lines[0].strip():
        raise Garbled("empty", "it ends after its version", 2)
    document = _object(lines[0], 2)
    ids = document.get("stateUniqueIds") or {}
    if not isinstance(ids, dict):
        raise Garbled("shape", "its state ids are no object", 2)
    return Committed(version, _milliseconds(document, "nextBatchWatermarkMs", 2), _state_ids(ids))


def _state_ids(document: dict[str, Any]) -> dict[str, tuple[tuple[str, ...], ...]]:
    try:
        return {
            str(operator): tuple(tuple(str(each) for each in stores) for stores in partitions)
            for operator, partitions in document.items()
        }
    except TypeError:
        raise Garbled("shape", "its state ids are not lists", 2) from None


def _source(version: str, position: int, number: int, line: str) -> SourceOffset:
    name, text = str(position), line
    if version == "v2":
        name, colon, text = line.partition(":")
        if not colon:
            raise Garbled("shape", "it is not NAME:OFFSETS", number)
    if text.startswith(("{", "[")):
        try:
            json.loads(text)
        except ValueError:
            raise Garbled("json", "it is not JSON", number) from None
    return SourceOffset(name, number, text)


def newer(what: str, known: tuple[str, ...]) -> str:
    """`offsets v3 is newer than v1, v2, which this version reads`."""
    return f"{what} newer than {', '.join(known)}, which this version reads"


def _supported(version: str, known: tuple[str, ...], what: str) -> None:
    if version in known:
        return
    if not version.strip():
        raise Garbled("empty", "it is empty")
    if version.startswith("v") and version[1:].isascii() and version[1:].isdigit():
        raise Garbled("newer", newer(f"{what} {version} is", known))
    raise Garbled("version", f"it begins with {version[:20]!r}, not {known[0]}")


def _object(line: str, number: int) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        raise Garbled("json", "it is not JSON", number) from None
    if not isinstance(found, dict):
        raise Garbled("shape", "it is no object", number)
    return found


def _milliseconds(document: dict[str, Any], key: str, number: int) -> int:
    value = document.get(key, 0)
    if not _whole(value):
        raise Garbled("shape", f"{key} is {value!r}", number)
    return int(value)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
