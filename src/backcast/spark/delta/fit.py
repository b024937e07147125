"""Whether the calls of `jvm` fit the version of Delta that the session has: those that read, and those that commit.

Without the first nothing works. Without the second a publish writes its rows through Delta's public interface.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from backcast.spark.delta.jvm import DELTA, DeltaJvm
from backcast.spark.gateway import find_cause

PROVEN = ("4.4.0",)
"""Versions of delta-spark on which the contract suite of targets ran."""

_Calls = Mapping[str, Mapping[str, int]]
"""Methods of classes, each with the number of arguments that it is called with."""

_READING: _Calls = {
    "DeltaLog": {
        "update": 3,
        "getSnapshotAt": 4,
        "createDataFrame": 4,
        "store": 0,
        "newDeltaHadoopConf": 0,
        "dataPath": 0,
        "logPath": 0,
        "forTable": 2,
        "invalidateCache": 2,
        "tombstoneRetentionMillis": 1,
        "deltaRetentionMillis": 1,
        "enableExpiredLogCleanup": 1,
    },
    "Snapshot": {
        "version": 0,
        "allFiles": 0,
        "tombstones": 0,
        "metadata": 0,
        "protocol": 0,
        "timestamp": 0,
        "transactions": 0,
    },
    "storage.LogStore": {"read": 2, "write": 4},
    "actions.Action": {"fromJson": 1},
}
_CONSTRUCTOR = "new"
_COMMITTING: _Calls = {
    "DeltaLog": {"startTransaction": 2},
    "OptimisticTransaction": {
        "commit": 2,
        "trackReadPredicates": 3,
        "readWholeTable": 0,
        "readTxn": 0,
        "txnVersion": 1,
        "writeFiles": 1,
    },
    "DeltaOperations$Write": {_CONSTRUCTOR: 9},
}
_found: dict[tuple[str, str], set[tuple[str, int]]] = {}
"""What a version's class was found to have: it stays so, and every group of chunks asks."""
_SIGNATURE = re.compile(r"[.$](\w+)\(([^)]*)\)")


def reading_problem(jvm: DeltaJvm) -> str | None:
    """Why nothing can be done with this version of Delta, or None."""
    return _misfit(jvm, _READING)


def committing_problem(jvm: DeltaJvm) -> str | None:
    """Why exact files cannot be committed with it, or None. That the calls are there is not enough: they are proven."""
    version = jvm.version()
    if version not in PROVEN:
        return f"delta-spark {version} is not one of {', '.join(PROVEN)}, on which exact commits are proven"
    return _misfit(jvm, _COMMITTING)


def _misfit(jvm: DeltaJvm, calls: _Calls) -> str | None:
    version = jvm.version()
    for name, methods in calls.items():
        if (version, name) not in _found:
            _found[version, name] = _signatures(jvm, DELTA + name)
        for method, count in methods.items():
            if (method, count) not in _found[version, name]:
                return f"delta-spark {version} has no {name}.{method} with {count} arguments"
    return None


def _signatures(jvm: DeltaJvm, name: str) -> set[tuple[str, int]]:
    """Public methods and constructors of a class with the number of their arguments; none when there is no class."""
    try:
        # On a cluster connectors come through a loader of Spark's, of which `Class.forName` does not know.
        loader = jvm.java("java.lang.Thread").currentThread().getContextClassLoader()
        found = loader.loadClass(name)
    except Exception as error:
        if find_cause(error, frozenset({"ClassNotFoundException"})) is None:
            raise
        return set()
    constructors = {(_CONSTRUCTOR, count) for _, count in _spelled(jvm, found.getConstructors())}
    return constructors | _spelled(jvm, found.getMethods())


def _spelled(jvm: DeltaJvm, members: Any) -> set[tuple[str, int]]:
    # As one text: each look at an element of a Java array is a call of its own.
    text = str(jvm.java("scala.runtime.ScalaRunTime").stringOf(members))
    return {(each[1], len(each[2].split(",")) if each[2] else 0) for each in _SIGNATURE.finditer(text)}
