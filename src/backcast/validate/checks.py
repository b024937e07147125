"""Checks that hold for a stage as for what readers see: the schema, and the keys; and what files readers would get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.model.masked import hides
from backcast.model.table import MANY_SMALL, SMALL_FILE, NetChange, TableIdentity
from backcast.model.verdict import Check, Consequence, Layer
from backcast.model.words import many
from backcast.ports import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def schema_check(planned: TableIdentity, current: TableIdentity) -> Check:
    if planned == current:
        detail = f"{len(planned.columns)} columns as planned"
        return Check(name="schema", passed=True, detail=detail, layer=Layer.SCHEMA)
    moved = [name for name in TableIdentity.model_fields if getattr(planned, name) != getattr(current, name)]
    detail = f"the table's {', '.join(moved)} changed since the plan"
    return Check(name="schema", passed=False, detail=detail, layer=Layer.SCHEMA)


def small_files_check(net: NetChange) -> list[Check]:
    """None when there is nothing to tell. A partition with few rows cannot have less than one small file."""
    small = [file for file in net.added if file.size < SMALL_FILE]
    partitions = {file.partition for file in small}
    if len(small) - len(partitions) <= MANY_SMALL:
        return []
    where = f"{many(len(partitions), 'partition')} of the table" if partitions != {""} else "the table"
    detail = f"{len(small)} of {many(len(net.added), 'staged file')} are smaller than 8 MiB, in {where}: slow to read"
    return [Check(name="file sizes", passed=False, detail=detail, consequence=Consequence.WARN)]


def key_checks(rows: DataFrame, key: tuple[str, ...], engine: Engine, masked: tuple[str, ...] = ()) -> list[Check]:
    """In one job; none for rows without a key. An example is shown unless a column of it is masked."""
    if not key:
        return []
    nulls, doubles, example = engine.key_problems(rows, key)
    name = ", ".join(key)
    shown = "" if hides(masked, *key) else f", e.g. {example}"
    return [
        Check(
            name="key not null",
            passed=not nulls,
            detail=f"{many(nulls, 'row')} with a null in {name}" if nulls else name,
            layer=Layer.QUALITY,
        ),
        Check(
            name="key unique",
            passed=not doubles,
            detail=f"{many(doubles, 'key')} more than once{shown}" if doubles else name,
            layer=Layer.QUALITY,
        ),
    ]
