"""What makes a streaming query another computation than the same transform over a batch. Runs no job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from backcast.model.late import Closing
from backcast.spark.inspection import items

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_DIFFERENT = {
    "DeduplicateWithinWatermark": "dropDuplicatesWithinWatermark forgets a key when the watermark passes it",
    "FlatMapGroupsWithState": "flatMapGroupsWithState sees rows in the order of batches",
    "FlatMapGroupsInPandasWithState": "applyInPandasWithState sees rows in the order of batches",
    "TransformWithState": "transformWithState sees rows in the order of batches",
    "TransformWithStateInPandas": "transformWithStateInPandas sees rows in the order of batches",
    "TransformWithStateInPySpark": "transformWithState sees rows in the order of batches",
}
_STATEFUL = frozenset({"Aggregate", "Deduplicate", *_DIFFERENT})
_IN_ORDER = frozenset(_DIFFERENT) - {"DeduplicateWithinWatermark"}
_ALL_FIELDS = 1_000
_SLIDE = re.compile(r"- (-?\d+)\) % (\d+)\)")
_LENGTH = re.compile(r"- \d+\) \+ (\d+)\), LongType, TimestampType")


def differences(rows: DataFrame) -> tuple[str, ...]:
    """A sentence for each operator whose result depends on batches and watermarks; none: a batch gives the same rows,
    and those that the stream dropped as late.
    """
    found = []
    for name, node in _nodes(rows):
        if name in _DIFFERENT:
            found.append(_DIFFERENT[name])
        elif name == "Join" and _both_streamed(node) and node.joinType().toString() != "Inner":
            kind = node.joinType().toString()
            found.append(f"a {kind} join of two streams finds out by the watermark that there is no match")
    return tuple(dict.fromkeys(found))


def in_order(rows: DataFrame) -> tuple[str, ...]:
    """A sentence for each operator whose result depends on which of two rows comes first."""
    return tuple(dict.fromkeys(_DIFFERENT[name] for name, _ in _nodes(rows) if name in _IN_ORDER))


def closing(rows: DataFrame) -> Closing | None:
    """When the query's first operator with a memory drops a record as late; None: it has none, and drops nothing."""
    found = list(_nodes(rows))
    stateful = [at for at, (name, node) in enumerate(found) if _keeps_state(name, node)]
    if not stateful:
        return None
    lowest = stateful[-1]
    branches = any(sum(bool(child.isStreaming()) for child in items(node.children())) > 1 for _, node in found)
    if branches or found[lowest][0] != "Aggregate":
        return Closing()
    for name, node in found[lowest + 1 :]:
        told = node.simpleString(_ALL_FIELDS) if name in ("Project", "Expand") else ""
        slide, length = _SLIDE.search(told), _LENGTH.search(told)
        if slide and length:
            return Closing(every=int(slide[2]), origin=int(slide[1]), length=int(length[1]))
    return Closing()


def is_stateful(rows: DataFrame) -> bool:
    """Whether the query keeps state between its batches."""
    return any(_keeps_state(name, node) for name, node in _nodes(rows))


def _keeps_state(name: str, node: Any) -> bool:
    return name in _STATEFUL or (name == "Join" and _both_streamed(node))


def _nodes(rows: DataFrame) -> Iterator[tuple[str, Any]]:
    pending = [rows._jdf.queryExecution().analyzed()]  # the plan has no public accessor in Python
    while pending:
        node = pending.pop()
        yield node.getClass().getSimpleName(), node
        pending += items(node.children())


def _both_streamed(join: Any) -> bool:
    return all(child.isStreaming() for child in items(join.children()))
