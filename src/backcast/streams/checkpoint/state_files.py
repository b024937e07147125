"""Files of state: which operators, partitions and stores there are, and which versions each can load.

    state/OPERATOR/PARTITION/[STORE/]     V.delta V.snapshot (HDFS); V.zip V.changelog SSTs/ (RocksDB)
    V_UUID.zip V_UUID.changelog           the same where commits name the files (format version 2)
    state/OPERATOR/_metadata/             which operator it is, and which stores it has

Version V is the state before batch V: what batch V - 1 left.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backcast.model.checkpoint import StoreKind
from backcast.model.checkpoint_log import newer

_FILE = re.compile(
    r"(?P<version>\d{1,18})(?:_(?P<id>[0-9a-f-]{36}))?\.(?P<kind>delta|snapshot|zip|changelog)", re.ASCII
)
_VERSION = re.compile(r"v\d{1,3}", re.ASCII)
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_WHOLE = ("snapshot", "zip")
DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class StateFile:
    """One version of one store of one partition, or what it adds to the version before."""

    version: int
    kind: str
    path: Path
    id: str | None = None

    @property
    def whole(self) -> bool:
        """Whether it stands alone."""
        return self.kind in _WHOLE


@dataclass(frozen=True, slots=True)
class Store:
    """The state of one partition under one name."""

    operator: int
    partition: int
    name: str
    folder: Path
    files: tuple[StateFile, ...]

    @property
    def kind(self) -> StoreKind:
        kinds = {each.kind for each in self.files}
        if kinds & {"delta", "snapshot"}:
            return StoreKind.HDFS
        if "changelog" in kinds:
            return StoreKind.CHANGELOG
        if "zip" in kinds or (self.folder / "SSTs").is_dir():
            return StoreKind.ROCKSDB
        return StoreKind.UNKNOWN

    def chain(self, version: int) -> tuple[StateFile, ...]:
        """The files that Spark loads for that version, oldest first.

        Raises MissingState when one of them is not there.
        """
        by_version: dict[int, list[StateFile]] = defaultdict(list)
        for each in self.files:
            by_version[each.version].append(each)
        found: list[StateFile] = []
        for number in range(version, 0, -1):
            here = by_version.get(number, [])
            whole = next((each for each in here if each.whole), None)
            added = next((each for each in here if not each.whole), None)
            if whole is not None:
                return (whole, *reversed(found))
            if added is None:
                raise MissingState(self, number, self.missing_name(number))
            found.append(added)
        return tuple(reversed(found))

    def missing_name(self, version: int) -> str:
        ending = {StoreKind.HDFS: "delta", StoreKind.CHANGELOG: "changelog"}.get(self.kind, "zip")
        return f"{version}.{ending}"

    def loads(self, version: int) -> bool:
        """Whether the files of that version are there; says nothing of their bytes."""
        try:
            self.chain(version)
        except MissingState:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Operator:
    """A stateful operator of the query."""

    number: int
    name: str
    """As Spark calls it; empty when its metadata cannot be read."""
    expected: tuple[tuple[str, int], ...]
    """Store and number of partitions, as its metadata says; empty when that cannot be read."""
    stores: tuple[Store, ...]
    properties: dict[str, Any]
    newer: str = ""
    """Why its metadata cannot be read, when that is of a version that is not known here."""

    @property
    def kind(self) -> StoreKind:
        kinds = {each.kind for each in self.stores} - {StoreKind.UNKNOWN}
        if StoreKind.CHANGELOG in kinds:
            return StoreKind.CHANGELOG
        return kinds.pop() if len(kinds) == 1 else StoreKind.UNKNOWN


class MissingState(Exception):
    """A file without which a version cannot be loaded."""

    def __init__(self, store: Store, version: int, name: str) -> None:
        super().__init__(name)
        self.store, self.version, self.name = store, version, name


def operators_of(state: Path) -> tuple[Operator, ...]:
    """By number. Spark's reader makes empty folders for operators that do not exist: they do not count."""
    if not state.is_dir():
        return ()
    found = [_operator(each) for each in state.iterdir() if each.is_dir() and _NUMBER.fullmatch(each.name)]
    return tuple(sorted((each for each in found if each is not None), key=lambda each: each.number))


def names_of(state: Path) -> frozenset[str]:
    """What Spark calls the operators that have state; empty for one whose metadata cannot be read. Lists no file of it:
    those of a running query come and go.
    """
    if not state.is_dir():
        return frozenset()
    folders = [each for each in state.iterdir() if _NUMBER.fullmatch(each.name)]
    found = {folder: _metadata(folder)[0] for folder in folders}
    return frozenset(name for folder, name in found.items() if name or any(folder.glob("[0-9]*")))


def file_version(name: str) -> int | None:
    """The state version that a file of that name, or its checksum, belongs to."""
    plain = name.removeprefix(".").removesuffix(".crc") if name.startswith(".") else name
    found = _FILE.fullmatch(plain)
    return None if found is None else int(found["version"])


def _operator(folder: Path) -> Operator | None:
    stores = tuple(
        store
        for partition in sorted(folder.iterdir(), key=lambda each: each.name)
        if partition.is_dir() and _NUMBER.fullmatch(partition.name)
        for store in _stores(int(folder.name), partition)
    )
    newer = _newer_metadata(folder / "_metadata")
    name, expected, properties = ("", (), {}) if newer else _metadata(folder)
    if not name and not newer and not any(store.files for store in stores):
        return None
    return Operator(int(folder.name), name, expected, stores, properties, newer)


def _stores(operator: int, partition: Path) -> list[Store]:
    """One without a name, or those that a join or a processor gave names."""
    number = int(partition.name)
    named = [each for each in sorted(partition.iterdir()) if each.is_dir() and each.name not in ("SSTs", "_metadata")]
    found = [Store(operator, number, each.name, each, _files(each)) for each in named]
    own = _files(partition)
    if own or not named:
        found.insert(0, Store(operator, number, DEFAULT, partition, own))
    return found


def _files(folder: Path) -> tuple[StateFile, ...]:
    found = []
    for each in folder.iterdir():
        match = _FILE.fullmatch(each.name)
        if match is not None:
            found.append(StateFile(int(match["version"]), match["kind"], each, match["id"]))
    return tuple(sorted(found, key=lambda each: (each.version, each.kind, each.id or "")))


def _newer_metadata(folder: Path) -> str:
    """In words, when there is metadata of a version that is not known here."""
    known = ("v1", "v2")
    found = [each.name for each in folder.iterdir() if _VERSION.fullmatch(each.name)] if folder.is_dir() else []
    for file in (folder / "metadata", *folder.glob("v2/[0-9]*")):
        try:
            found.append(file.read_text(encoding="utf-8").partition("\n")[0])
        except (OSError, UnicodeDecodeError):
            continue
    beyond = [each for each in found if _VERSION.fullmatch(each) and each not in known]
    return newer(f"the metadata of the operator, {max(beyond)}, is", known) if beyond else ""


def _metadata(folder: Path) -> tuple[str, tuple[tuple[str, int], ...], dict[str, Any]]:
    """Name, stores and properties; empty where the file is missing or cannot be read: a restart does not need it."""
    newer = folder / "_metadata" / "v2"
    numbers = (
        sorted(int(each.name) for each in newer.iterdir() if _NUMBER.fullmatch(each.name)) if newer.is_dir() else []
    )
    file = newer / str(numbers[-1]) if numbers else folder / "_metadata" / "metadata"
    try:
        document = json.loads(file.read_text(encoding="utf-8").partition("\n")[2])
        info = document["operatorInfo"]
        stores = tuple((str(each["storeName"]), int(each["numPartitions"])) for each in document["stateStoreInfo"])
        told = info.get("operatorProperties") or document.get("operatorPropertiesJson") or "{}"
        properties = json.loads(told) if isinstance(told, str) else told
        return str(info["operatorName"]), stores, properties if isinstance(properties, dict) else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "", (), {}
