"""Checks that hold for a stage as for what readers see: the schema, and the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.model.table import TableIdentity
from backcast.model.verdict import Check, Layer
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


def key_checks(rows: DataFrame, key: tuple[str, ...], engine: Engine, masked: tuple[str, ...] = ()) -> list[Check]:
    """In one job; none for rows without a key. An example is shown unless a column of it is masked."""
    if not key:
        return []
    nulls, doubles, example = engine.key_problems(rows, key)
    name = ", ".join(key)
    shown = "" if set(key) & set(masked) else f", e.g. {example}"
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
