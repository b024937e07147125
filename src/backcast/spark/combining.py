"""What in an analysed plan makes a row of several records of a topic. Runs no job."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from backcast.model.analysis import Combines
from backcast.spark.inspection import items

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KINDS = {
    "Aggregate": Combines.GROUPS,
    "Deduplicate": Combines.DUPLICATES,
    "DeduplicateWithinWatermark": Combines.DUPLICATES,
    "Distinct": Combines.DUPLICATES,
    "Window": Combines.WINDOWS,
    "AggregateInPandas": Combines.OWN,
    "CoGroup": Combines.OWN,
    "MapGroups": Combines.OWN,
}
_OWN_KINDS = ("FlatMapGroups", "FlatMapCoGroups", "TransformWithState")
_OF_TWO = ("Join", "LateralJoin", "Intersect", "Except", "AsOfJoin")


def combining(rows: DataFrame, topics: Sequence[DataFrame]) -> tuple[Combines, ...]:
    """What the plan does to records of these topics. Other tables may be looked up, and filtered by."""
    if not topics:
        return ()
    known = [leaf for each in topics for leaf in items(_analysed(each).collectLeaves())]
    return _Search(lambda leaf: any(leaf.sameResult(each) for each in known)).found(_analysed(rows))


def remembered(rows: DataFrame) -> tuple[Combines, ...]:
    """The same of a transform over a topic without end."""
    return _Search(lambda leaf: bool(leaf.isStreaming())).found(_analysed(rows))


class _Search:
    """Goes through one plan. What is named by WITH stands beside the rest of it, and is looked up there."""

    def __init__(self, is_topic: Callable[[Any], bool]) -> None:
        self._is_topic = is_topic
        self._named: dict[int, bool] = {}
        self._found: dict[Combines, None] = {}

    def found(self, plan: Any) -> tuple[Combines, ...]:
        under_way = [self._reads(plan)]
        answer: bool | None = None
        # Not by calls within calls: a loop of `withColumn` makes plans deeper than Python's stack.
        while under_way:
            try:
                child = under_way[-1].send(answer)
            except StopIteration as done:
                under_way.pop()
                answer = done.value
            else:
                under_way.append(self._reads(child))
                answer = None
        return tuple(self._found)

    def _reads(self, node: Any) -> Generator[Any, bool | None, bool]:
        """Whether rows of a topic go into those of the node; what combines them is noted on the way. Asks the same of
        what it yields.
        """
        kind = str(node.getClass().getSimpleName())
        if kind == "CTERelationRef":
            return self._named.get(int(node.cteId()), False)
        children = [*self._children(kind, node)]
        if not children:
            return self._is_topic(node)
        some, every = False, True
        for each in children:
            one = bool((yield each))
            some, every = some or one, every and one
        for each in items(node.subqueries()):
            if (yield each):
                # A subquery sees all of its rows at once.
                self._found[Combines.JOINS] = None
        if kind == "CTERelationDef":
            self._named[int(node.id())] = some
        elif some and (does := _does(kind)) is not None:
            self._found[does] = None
        elif every and kind in _OF_TWO:
            self._found[Combines.JOINS] = None
        return some

    def _children(self, kind: str, node: Any) -> Iterator[Any]:
        """Definitions before what uses them."""
        if kind == "WithCTE":
            yield from items(node.cteDefs())
            yield node.plan()
        else:
            yield from items(node.children())


def _does(kind: str) -> Combines | None:
    return Combines.OWN if kind.startswith(_OWN_KINDS) else _KINDS.get(kind)


def _analysed(rows: DataFrame) -> Any:
    return rows._jdf.queryExecution().analyzed()  # the plan has no public accessor in Python
