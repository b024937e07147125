"""Transforms that reject records: what they must return, and their rows without what is not the table's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from backcast.model.finding import Finding, block
from backcast.model.manifest import InputPin
from backcast.model.quarantine import POSITION, REJECTED, rejects
from backcast.model.table import Column
from backcast.ports import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLACE = ("topic:string", "partition:int", "offset:bigint")


def without_rejected(
    engine: Engine, rows: DataFrame, table: Iterable[Column], inputs: Iterable[InputPin]
) -> tuple[DataFrame, list[Finding]]:
    """The rows that are for the table, as a run would write them, and what is wrong with how others are rejected."""
    returned = {each.name: each.type for each in engine.analyse(rows).columns}
    names = frozenset(each.name for each in table)
    if not rejects(returned, names):
        return rows, []
    topics = frozenset(pin.log.topic for pin in inputs if pin.log is not None)
    found = _problems(returned, has_topic=bool(topics))
    return (rows, found) if found else (engine.sifted(rows, names, topics).kept, [])


def _problems(returned: dict[str, str], *, has_topic: bool) -> list[Finding]:
    if not has_topic:
        return [
            block(
                "rejected.no-topic",
                f"the transform returns column {REJECTED!r}, and none of its inputs is a topic whose records it could"
                " reject",
                "filter rows in the transform, or call the column something else and add it to the table",
            )
        ]
    if POSITION not in returned or not all(each in returned[POSITION] for each in _PLACE):
        return [
            block(
                "rejected.no-position",
                f"the transform returns column {REJECTED!r} and not {POSITION!r}, which tells which record it rejects",
                f"return {POSITION} of the input as it came, for rows that are kept too",
            )
        ]
    if returned[REJECTED] not in ("string", "void"):
        return [
            block(
                "rejected.type",
                f"column {REJECTED!r} is {returned[REJECTED]}, and holds the reason as text",
                "return the reason as STRING, and NULL for rows that are kept",
            )
        ]
    return []
