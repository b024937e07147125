"""What the analysed plan of a transform tells before any row is computed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from backcast.model.table import Column


class Combines(StrEnum):
    """What lets several records of a topic decide about one row, as the end of a sentence.

    A stream with such a transform keeps state between its batches.
    """

    GROUPS = "groups them"
    WINDOWS = "ranks or compares them over a window"
    DUPLICATES = "drops duplicates among them"
    JOINS = "joins them with each other"
    OWN = "computes over them in Python or with state of its own"


TAKEN_BY_KEY = (Combines.DUPLICATES, Combines.WINDOWS)
"""What keeps one record of each key, which a merge decides again whatever slices had the records."""


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
    combines: tuple[Combines, ...] = ()
    """What is done to records of a topic; none: each row is made of one of them."""
