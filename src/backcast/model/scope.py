"""Which rows may change: a conjunction of clauses, each about one column.

Adapters turn it into their own expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

from backcast.model.column import TimeColumn
from backcast.model.document import Document
from backcast.model.time import Interval, joined


class TimeClause(Document):
    """The column's value lies in one of the half-open ranges. Bounds are text as `TimeColumn.encode` writes it."""

    type: Literal["time"] = "time"
    time: TimeColumn
    ranges: tuple[tuple[str, str], ...]

    @property
    def column(self) -> str:
        return self.time.column


class ValueClause(Document):
    """The column equals one of the values: what `--where tenant=T-41` asks for.

    Values are text, compared in the column's type.
    """

    type: Literal["value"] = "value"
    column: str
    values: tuple[str, ...]


Clause = Annotated[TimeClause | ValueClause, Field(discriminator="type")]


class Predicate(Document):
    """All clauses hold. No clause at all means every row."""

    clauses: tuple[Clause, ...] = ()

    def and_values(self, where: tuple[ValueClause, ...]) -> Predicate:
        return Predicate(clauses=(*self.clauses, *where))


EVERYTHING = Predicate()


def union(predicates: Sequence[Predicate]) -> Predicate:
    """One predicate for those of chunks in order, which differ in their ranges of time; touching ones are joined."""
    first = predicates[0]
    clauses = list(first.clauses)
    for index, clause in enumerate(clauses):
        if isinstance(clause, TimeClause):
            ranges: list[tuple[str, str]] = []
            for each in predicates:
                own = each.clauses[index]
                for lower, upper in own.ranges if isinstance(own, TimeClause) else ():
                    if ranges and clause.time.value(lower) <= clause.time.value(ranges[-1][1]):  # type: ignore[operator]  # one column, one type
                        ranges[-1] = (ranges[-1][0], max(ranges[-1][1], upper, key=clause.time.value))
                    else:
                        ranges.append((lower, upper))
            clauses[index] = TimeClause(time=clause.time, ranges=tuple(ranges))
    return Predicate(clauses=tuple(clauses))


class Scope(Document):
    """The rows a run may change, and whether they are whole partitions or must be cut out of files row by row."""

    windows: tuple[Interval, ...]
    predicate: Predicate
    exact: bool = False
    """True: some touched files also hold rows out of scope, which are carried over unchanged."""

    @property
    def is_part(self) -> bool:
        """Whether only rows with some values are meant, of all in the windows."""
        return bool(self._values())

    def meets(self, other: Scope) -> bool:
        """Whether a row can lie in both. Without windows all times are meant."""
        if (
            self.windows
            and other.windows
            and not any(mine.overlaps(its) for mine in self.windows for its in other.windows)
        ):
            return False
        mine, its = self._values(), other._values()
        return all(mine[column] & its[column] for column in mine.keys() & its.keys())

    def _values(self) -> dict[str, frozenset[str]]:
        clauses = (clause for clause in self.predicate.clauses if isinstance(clause, ValueClause))
        return {clause.column: frozenset(clause.values) for clause in clauses}


def during(columns: tuple[TimeColumn, ...], windows: tuple[Interval, ...]) -> Predicate:
    """Rows whose time columns lie in one of the windows; touching windows are joined first."""
    clauses = []
    for column in columns:
        ranges = [(column.encode(each.start), column.encode(each.end)) for each in joined(windows)]
        clauses.append(TimeClause(time=column, ranges=tuple(each for each in ranges if each[0] != each[1])))
    return Predicate(clauses=tuple(clauses))
