"""What makes a streaming query another computation than the same transform over a batch. Runs no job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from backcast.model.late import Closing, Holding
from backcast.model.replay import Difference, Mend
from backcast.spark.inspection import inspect, items

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
_STATEFUL = frozenset({"Aggregate", "Deduplicate", "Distinct", *_DIFFERENT})
_IN_ORDER = frozenset(_DIFFERENT) - {"DeduplicateWithinWatermark"}
_CLOCKS = frozenset({"current_timestamp", "now", "localtimestamp", "current_date", "current_time"})
_EVENT_TIME, _SESSION = "spark.watermarkDelayMs", "spark.sessionWindow"
"""Spark's marks on columns."""
_MATCHING = frozenset({"Inner", "LeftSemi"})
"""Joins that give out a row when its match is read, and wait for nothing."""
_ALL_FIELDS = 1_000
_SLIDE = re.compile(r"- (-?\d+)\) % (\d+)\)")
_LENGTH = re.compile(r"- \d+\) \+ (\d+)\), LongType, TimestampType")


def differences(rows: DataFrame) -> tuple[Difference, ...]:
    """One for each operator whose result depends on batches, on watermarks, on records from before the window, or on
    the clock; none: a batch gives the same rows, and those that the stream dropped as late.
    """
    found = [each for name, node in _nodes(rows) if node.isStreaming() for each in _different(name, node)]
    found += [
        Difference(f"{each} is when a batch of the stream ran, and a run has another time", Mend.NOTHING)
        for each in inspect(rows)[0]
        if each in _CLOCKS
    ]
    return tuple(dict.fromkeys(found))


def _different(name: str, node: Any) -> Iterator[Difference]:
    if name in _DIFFERENT:
        yield Difference(_DIFFERENT[name], Mend.STATE, beyond=name in _IN_ORDER)
        if name in _IN_ORDER and _by_clock(name, node):
            yield Difference(
                "its timeouts go by the clock, which a replay cannot turn back: they come at other records",
                Mend.NOTHING,
            )
    elif name == "Deduplicate" and not any(_marked(each, _EVENT_TIME) for each in items(node.keys())):
        # With event time among the columns, all rows of a key are of one moment, on one side of every edge.
        yield Difference(
            "dropDuplicates without event time keeps the first row of a key, which may lie before the window",
            Mend.STATE,
        )
    elif name == "Aggregate" and _of_sessions(node):
        yield Difference("a session may begin before the window, or go on behind it", Mend.WARM_UP, beyond=True)
    elif name == "Join" and _both_streamed(node):
        kind = node.joinType().toString()
        if kind in _MATCHING:
            because = "a join of two streams meets records from before the window"
            yield Difference(because, Mend.WARM_UP, beyond=True)
        else:
            because = f"a {kind} join of two streams finds out by the watermark that there is no match"
            yield Difference(because, Mend.STATE, beyond=True)


def holding(rows: DataFrame) -> Holding | None:
    """What the query has read and not written, from one batch to another; None: it writes each row in the batch that
    makes it.
    """
    found = [(name, node) for name, node in _nodes(rows) if node.isStreaming()]
    joins = [node for name, node in found if name == "Join" and _both_streamed(node)]
    aggregates = [node for name, node in found if name in ("Aggregate", "Distinct")]
    outer = any(each.joinType().toString() not in _MATCHING for each in joins)
    if not aggregates and not outer and not any(name in _IN_ORDER for name, _ in found):
        return None
    sessions = any(_of_sessions(node) for name, node in found if name == "Aggregate")
    # What a join gives out may be older than the watermark.
    unknown = bool(joins) or sessions or any(name in _IN_ORDER for name, _ in found)
    windows = [each for name, node in found if (each := _window(name, node)) is not None]
    return Holding(tuple(windows), unknown=unknown)


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
    below = (_window(name, node) for name, node in found[lowest + 1 :])
    return next((each for each in below if each is not None), Closing())


def is_stateful(rows: DataFrame) -> bool:
    """Whether the query keeps state between its batches."""
    return any(_keeps_state(name, node) for name, node in _nodes(rows))


def streamed_leaves(rows: DataFrame) -> int:
    """How often the query reads a stream."""
    return sum(bool(node.isStreaming()) for _, node in _nodes(rows) if not list(items(node.children())))


def _keeps_state(name: str, node: Any) -> bool:
    return bool(node.isStreaming()) and (name in _STATEFUL or (name == "Join" and _both_streamed(node)))


def _window(name: str, node: Any) -> Closing | None:
    """The windows of event time that the node makes."""
    told = node.simpleString(_ALL_FIELDS) if name in ("Project", "Expand") else ""
    slide, length = _SLIDE.search(told), _LENGTH.search(told)
    return Closing(every=int(slide[2]), origin=int(slide[1]), length=int(length[1])) if slide and length else None


def _of_sessions(aggregate: Any) -> bool:
    grouping = items(aggregate.groupingExpressions())
    return any(_marked(each, _SESSION) for one in grouping for each in items(one.references().toSeq()))


def _marked(column: Any, mark: str) -> bool:
    return bool(column.metadata().contains(mark))


def _by_clock(name: str, node: Any) -> bool:
    """Whether state of one's own is called when some time has gone by for the machine."""
    asked = node.timeMode() if name.startswith("TransformWithState") else node.timeout()
    return str(asked.toString()).startswith("ProcessingTime")


def _nodes(rows: DataFrame) -> Iterator[tuple[str, Any]]:
    pending = [rows._jdf.queryExecution().analyzed()]  # the plan has no public accessor in Python
    while pending:
        node = pending.pop()
        yield node.getClass().getSimpleName(), node
        pending += items(node.children())


def _both_streamed(join: Any) -> bool:
    return all(child.isStreaming() for child in items(join.children()))
