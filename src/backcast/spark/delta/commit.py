"""One commit of a Delta log, as its JSON tells it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backcast.spark.delta.jvm import DeltaJvm


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit: who made it and which files it added and removed."""

    version: int
    info: dict[str, Any]
    adds: tuple[dict[str, Any], ...]
    removes: tuple[dict[str, Any], ...]
    fences: frozenset[str]
    changes_layout: bool

    @property
    def note(self) -> dict[str, Any]:
        """What we wrote beside the commit; empty for somebody else's."""
        try:
            found = json.loads(self.info.get("userMetadata") or "{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def changes_data(self) -> bool:
        return any(each.get("dataChange", True) for each in (*self.adds, *self.removes))


_ADDED_ONLY = frozenset({"stats", "modificationTime", "clusteringProvider", "backReference", "amtPassthrough"})
"""What an add action says and a remove action does not."""


def removal(add: dict[str, Any], millis: int) -> dict[str, Any]:
    """The action that removes a file which this add action describes."""
    kept = {key: value for key, value in add.items() if key not in _ADDED_ONLY}
    return {"remove": {**kept, "dataChange": True, "deletionTimestamp": millis, "extendedFileMetadata": True}}


_MANY_READ, _MANY_FILES = 200, 1000
_read: dict[tuple[str, int, int], Commit] = {}
"""Small commits that were read before. A commit never changes; in its place there can only be that of a new table."""


def read_commit(jvm: DeltaJvm, log: Any, version: int) -> Commit | None:
    """None when the log no longer has that commit."""
    stamp = jvm.stamp(log, version)
    if stamp is None:
        return None
    known = _read.get(stamp)
    if known is not None:
        return known
    actions = jvm.actions(log, version)
    if actions is None:
        return None
    commit = _commit(version, actions)
    if len(commit.adds) + len(commit.removes) <= _MANY_FILES:
        if len(_read) >= _MANY_READ:
            _read.clear()
        _read[stamp] = commit
    return commit


def _commit(version: int, actions: list[dict[str, Any]]) -> Commit:
    return Commit(
        version=version,
        info=next((each["commitInfo"] for each in actions if "commitInfo" in each), {}),
        adds=tuple(each["add"] for each in actions if "add" in each),
        removes=tuple(each["remove"] for each in actions if "remove" in each),
        fences=frozenset(each["txn"]["appId"] for each in actions if "txn" in each),
        changes_layout=any("metaData" in each or "protocol" in each for each in actions),
    )
