"""What the analysed plan of a transform tells before any row is computed."""

from __future__ import annotations

from dataclasses import dataclass

from backcast.model.table import Column


@dataclass(frozen=True, slots=True)
class Analysis:
    """Names are those of the SQL functions, lower case: `rand`, `uuid`, `current_timestamp`."""

    columns: tuple[Column, ...]
    nondeterministic: tuple[str, ...] = ()
    """Two runs over the same input give different rows."""
    order_dependent: tuple[str, ...] = ()
    """The result depends on the order of rows, which Spark does not promise."""
    opaque: tuple[str, ...] = ()
    """Python functions, which nobody can look into."""
    tables: tuple[str, ...] = ()
    """Every table that the plan reads, also in subqueries."""
    unpinned: tuple[str, ...] = ()
    """Tables that the plan reads at whatever version they have by then."""
    files: bool = False
    """The plan reads files directly."""
