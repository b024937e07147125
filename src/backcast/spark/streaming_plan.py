"""What makes a streaming query another computation than the same transform over a batch. Runs no job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

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


def is_stateful(rows: DataFrame) -> bool:
    """Whether the query keeps state between its batches."""
    return any(name in _STATEFUL or (name == "Join" and _both_streamed(node)) for name, node in _nodes(rows))


def _nodes(rows: DataFrame) -> Iterator[tuple[str, Any]]:
    pending = [rows._jdf.queryExecution().analyzed()]  # the plan has no public accessor in Python
    while pending:
        node = pending.pop()
        yield node.getClass().getSimpleName(), node
        pending += items(node.children())


def _both_streamed(join: Any) -> bool:
    return all(child.isStreaming() for child in items(join.children()))
