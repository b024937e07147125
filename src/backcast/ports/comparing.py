"""What the flow asks of Spark about two sets of rows: how they differ. `spark/diff.py` answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.column import TimeColumn
    from backcast.model.diff import Comparison, DiffRules
    from backcast.model.digest import Digest
    from backcast.model.scope import Predicate
    from backcast.model.time import Grain


@dataclass(frozen=True, slots=True)
class Comparing:
    """How two frames are compared."""

    rules: DiffRules
    parts: Mapping[str, Predicate] | None = None
    """Compared one by one, a row in the first that it matches; None: all rows are one part."""
    by_time: tuple[TimeColumn, Grain] | None = None
    """Instead of `parts`: every day (hour, month) of this column that has rows."""
    known: Mapping[str, Digest] | None = None
    """Digests of the right side's parts, when somebody has read them."""
    unique: bool = False
    """No key occurs twice on the right side."""
    rows: bool = True
    """False: only counts and digests of the parts."""
    columns: bool = True
    samples: int = 10
    """Rows to show of each kind of change."""


class Comparer(Protocol):
    """Compares rows. Never raises because rows or schemas differ."""

    def compare(self, left: DataFrame, right: DataFrame, asked: Comparing) -> Comparison:
        """Part by part, and column by column and row by row where digests differ."""

    def count(self, left: DataFrame, right: DataFrame, asked: Comparing) -> Comparison:
        """The same without columns and samples: the cheapest way to learn how many rows changed."""

    def changed_rows(self, left: DataFrame, right: DataFrame, asked: Comparing) -> DataFrame:
        """The rows that differ: `_change`, `_chunk`, `_times`, `_columns`, the key, `before` and `after`."""
