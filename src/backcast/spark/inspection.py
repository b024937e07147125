"""Search an analysed plan for what makes two runs differ. Runs no job."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from backcast.spark.delta.paths import by_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NONDETERMINISTIC = {
    "Rand": "rand",
    "Randn": "randn",
    "RandStr": "randstr",
    "Uniform": "uniform",
    "Uuid": "uuid",
    "Shuffle": "shuffle",
    "Sample": "sample",
    "CurrentTimestamp": "current_timestamp",
    "Now": "now",
    "LocalTimestamp": "localtimestamp",
    "CurrentDate": "current_date",
    "CurrentTime": "current_time",
    "MonotonicallyIncreasingID": "monotonically_increasing_id",
    "SparkPartitionID": "spark_partition_id",
    "CallMethodViaReflection": "reflect",
    "TryReflect": "try_reflect",
}
ORDER_DEPENDENT = {
    "First": "first",
    "Last": "last",
    "AnyValue": "any_value",
    "MaxBy": "max_by",
    "MinBy": "min_by",
    "CollectList": "collect_list",
    "CollectSet": "collect_set",
    "ListAgg": "listagg",
    "RowNumber": "row_number",
    "NTile": "ntile",
    "Lead": "lead",
    "Lag": "lag",
    "Deduplicate": "dropDuplicates",
    "GlobalLimit": "limit",
}
_FILES = ("LogicalRelation", "HiveTableRelation")
_FILE_RELATION = "HadoopFsRelation"
_ASSIGNED = re.compile(r"strategy=Assign\[([^\]]*)\]")
_NARROW = frozenset(
    {
        "CollectMetrics",
        "DataSourceV2Relation",
        "Filter",
        "Generate",
        "LogicalRelation",
        "MapInArrow",
        "MapInPandas",
        "Project",
        "SubqueryAlias",
        "Union",
        "View",
    }
)
_ROW_BY_ROW = (_NARROW - {"Generate", "MapInArrow", "MapInPandas"}) | {
    "CTERelationDef",
    "CTERelationRef",
    "Join",
    "LocalRelation",
    "LogicalRDD",
    "ResolvedHint",
    "Sort",
    "Window",
    "WithCTE",
}
_OPAQUE = ("PythonUDF", "PythonUDAF", "PythonUDTF", "ScalaUDF", "ScalaUDAF", "ScalaAggregator")


def inspect(rows: DataFrame) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Non-deterministic expressions, order-dependent ones, and functions nobody can look into, by name."""
    analysed = rows._jdf.queryExecution().analyzed()  # the plan has no public accessor in Python
    nodes: list[dict[str, Any]] = []
    _walk(json.loads(analysed.toJSON()), nodes)
    names = [(node["class"].rsplit(".", 1)[-1], node) for node in nodes]
    nondeterministic = {NONDETERMINISTIC[name] for name, _ in names if name in NONDETERMINISTIC}
    ordered = {ORDER_DEPENDENT[name] for name, _ in names if name in ORDER_DEPENDENT}
    opaque = {str(node.get("name") or node.get("udfName") or name) for name, node in names if name in _OPAQUE}
    return tuple(sorted(nondeterministic)), tuple(sorted(ordered)), tuple(sorted(opaque))


def tables(rows: DataFrame) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """Tables that the plan reads, those of them without a pinned version, and whether it reads files directly.

    Also inside subqueries, which belong to expressions and are no leaves of the plan around them.
    """
    analysed = rows._jdf.queryExecution().analyzed()
    names, unpinned, files = set(), set(), False
    for leaf in _leaves(analysed):
        kind = leaf.getClass().getSimpleName()
        if kind == "DataSourceV2Relation":
            names.add(leaf.name())
            if not leaf.options().containsKey("snapshot-id"):
                unpinned.add(leaf.name())
        elif (delta := _delta_table(leaf) if kind == "LogicalRelation" else None) is not None:
            name, pinned = delta
            names.add(name)
            if not pinned:
                unpinned.add(name)
            continue
        elif (log := _log(leaf) if kind == "LogicalRelation" else None) is not None:
            topics, literal = log
            names |= topics
            if not literal:
                unpinned |= topics
            continue
        files = files or kind in _FILES
    return tuple(sorted(names)), tuple(sorted(unpinned)), files


def is_narrow(rows: DataFrame) -> bool:
    """Whether every row is made of one row of its input where that is read: nothing is joined, grouped or sorted."""
    return _only(rows, _NARROW)


def keeps_rows(rows: DataFrame) -> bool:
    """Whether a row is made of one row of its input: others may be looked up or left out, nothing is grouped."""
    return _only(rows, _ROW_BY_ROW)


def _only(rows: DataFrame, kinds: frozenset[str]) -> bool:
    pending = [rows._jdf.queryExecution().analyzed()]
    while pending:
        node = pending.pop()
        if node.getClass().getSimpleName() not in kinds:
            return False
        pending += items(node.children())
    return True


def _leaves(analysed: Any) -> Iterator[Any]:
    for plan in (analysed, *items(analysed.subqueriesAll())):
        yield from items(plan.collectLeaves())


def items(sequence: Any) -> Iterator[Any]:
    """The elements of a Scala sequence."""
    for index in range(sequence.size()):
        yield sequence.apply(index)


def _log(leaf: Any) -> tuple[set[str], bool] | None:
    """The topics that are read, as inputs are named, and whether by literal offsets; None for anything else.

    Of what a relation of Kafka's connector knows only its text is public.
    """
    relation = leaf.relation()
    if relation.getClass().getSimpleName() != "KafkaRelation":
        return None
    text = relation.toString()
    assigned = _ASSIGNED.search(text)
    if assigned is None:
        return {f"kafka:{text}"}, False
    topics = {f"kafka:{each.strip().rpartition('-')[0]}" for each in assigned[1].split(",")}
    return topics, text.count("SpecificOffsetRangeLimit") == len(("start", "end"))


def _delta_table(leaf: Any) -> tuple[str, bool] | None:
    """A Delta table's name and whether its version is pinned; None for any other relation of files."""
    relation = leaf.relation()
    # Delta's own relations are subclasses without a name.
    location = relation.location() if _FILE_RELATION in _ancestry(relation) else None
    if location is None or not location.getClass().getName().startswith("org.apache.spark.sql.delta.files.Tahoe"):
        return None
    found = location.getClass().getSimpleName() == "TahoeLogFileIndex"
    return by_path(location.path().toString()), found and bool(location.isTimeTravelQuery())


def _ancestry(value: Any) -> list[str]:
    """The class of a Java object and those it extends."""
    found, each = [], value.getClass()
    while each is not None:
        found.append(each.getSimpleName())
        each = each.getSuperclass()
    return found


def _walk(value: Any, nodes: list[dict[str, Any]]) -> None:
    if isinstance(value, dict):
        if "class" in value:
            nodes.append(value)
        for each in value.values():
            _walk(each, nodes)
    elif isinstance(value, list):
        for each in value:
            _walk(each, nodes)
