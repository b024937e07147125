"""The determinism check: a sample of chunks is computed a second time, and the same rows must come out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backcast.model.digest import EMPTY, Digest
from backcast.model.manifest import ChunkPlan
from backcast.model.verdict import Check
from backcast.model.words import many
from backcast.ports import Engine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Again:
    """Which chunks are computed once more, and how."""

    plans: tuple[ChunkPlan, ...]
    compute: Callable[[ChunkPlan], DataFrame]
    """Their rows, from the same inputs by the same code; nothing has been computed yet."""


def computed_twice(again: Again, first: Callable[[ChunkPlan], Digest], engine: Engine) -> Check:
    """Every difference is one of order, of parallelism, of time or of chance: those must not change a result."""
    wrong, rows = [], EMPTY
    for plan in again.plans:
        once, twice = first(plan), engine.digest_again(again.compute(plan))
        rows += once
        if once != twice:
            was, became = f"{once.rows:,} rows ({once.short()})", f"{twice.rows:,} ({twice.short()})"
            wrong.append(f"{plan.id}: {was}, and the second time {became}")
    detail = f"{many(len(again.plans), 'chunk')} with {many(rows.rows, 'row')} came out the same"
    if wrong:
        detail = f"{wrong[0]}: the result depends on the order of rows, on parallelism, on time or on chance"
    return Check(name="computed twice", passed=not wrong, detail=detail)
