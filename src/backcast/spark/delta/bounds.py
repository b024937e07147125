"""Whether a data file lies in a scope, from its partition values and its statistics alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, assert_never

from backcast.errors import InvalidRequest
from backcast.model.scope import Clause, Predicate, TimeClause, ValueClause
from backcast.model.table import Claim
from backcast.spark.delta.layout import Layout
from backcast.spark.predicates import parse_value, type_of

_TRUNCATED = timedelta(microseconds=999)
"""Statistics hold milliseconds, cut off."""

_PREFIX = 32
"""Statistics hold that many characters of a text; a longer maximum is only an upper bound."""


@dataclass(frozen=True, slots=True)
class Range:
    """What is known about a column in a file. `exact`: both ends are values that occur."""

    low: Any
    high: Any
    nulls: bool
    exact: bool


class FileBounds:
    """Asks of add and remove actions whether a scope holds all of their rows, or could hold any."""

    def __init__(self, layout: Layout, scope: Predicate) -> None:
        self._layout = layout
        self._clauses = [(clause, _wanted(clause, layout)) for clause in scope.clauses]

    def may_hold_any(self, action: dict[str, Any]) -> bool:
        """False only when it is proven that no row lies in the scope."""
        for clause, wanted in self._clauses:
            known = self._range(action, _column(clause))
            if known is None:
                continue
            if known.low is None or not any(known.high >= low and _before(known.low, high) for low, high in wanted):
                return False
        return True

    def holds_all(self, action: dict[str, Any]) -> bool:
        """True only when it is proven that every row lies in the scope."""
        for clause, wanted in self._clauses:
            known = self._range(action, _column(clause))
            if known is None or known.nulls or known.low is None:
                return False
            if not any(known.low >= low and _before(known.high, high) for low, high in wanted):
                return False
            if isinstance(clause, ValueClause) and not (known.exact and known.low == known.high):
                return False
        return True

    def _range(self, action: dict[str, Any], column: str) -> Range | None:
        """None when nothing is known."""
        return _Known(self._layout, action).range(column)


class _Known:
    """What one action tells about columns of its file."""

    def __init__(self, layout: Layout, action: dict[str, Any]) -> None:
        self._layout, self._partition = layout, action.get("partitionValues")
        self._stats = json.loads(action.get("stats") or "{}", parse_float=Decimal)

    def range(self, column: str) -> Range | None:
        """None when nothing is known."""
        name, type_name = self._layout.physical[column], self._layout.types[column]
        if column in self._layout.partition_columns:
            if self._partition is None:
                return None
            # In Delta's log an empty text stands for null too.
            text = self._partition.get(name)
            try:
                value = parse_value(str(text), type_name) if text else None
            except InvalidRequest:
                # A date after 9999, for example.
                return None
            return Range(value, value, nulls=value is None, exact=True)
        low, high = (_value(self._stats.get(end, {}).get(name), type_name) for end in ("minValues", "maxValues"))
        if low is None or high is None:
            return None
        exact = not (isinstance(high, str) and len(high) >= _PREFIX) and not isinstance(high, datetime)
        return Range(low, _not_truncated(high), nulls=not self._has_no_null(name), exact=exact)

    def proves(self, claim: Claim) -> bool:
        """Whether it holds for all rows of the file."""
        if claim.column not in self._layout.physical:
            return False
        if claim.not_null and claim.column not in self._layout.partition_columns:
            return self._has_no_null(self._layout.physical[claim.column])
        known = self.range(claim.column)
        if known is None or known.low is None:
            return False
        type_name = self._layout.types[claim.column]
        if claim.least is not None and known.low < parse_value(claim.least, type_name):
            return False
        return claim.greatest is None or bool(known.high <= parse_value(claim.greatest, type_name))

    def _has_no_null(self, name: str) -> bool:
        return bool(self._stats.get("nullCount", {}).get(name) == 0)


def proven(layout: Layout, actions: Iterable[dict[str, Any]], claims: Sequence[Claim]) -> frozenset[Claim]:
    """Claims that hold for all rows of all these files."""
    left = frozenset(claims)
    for action in actions:
        known = _Known(layout, action)
        left = frozenset(claim for claim in left if known.proves(claim))
        if not left:
            break
    return left


def partition_clauses(layout: Layout, scope: Predicate) -> Predicate:
    """The part of the scope that partition values alone decide."""
    return Predicate(clauses=tuple(each for each in scope.clauses if _column(each) in layout.partition_columns))


def _column(clause: Clause) -> str:
    return clause.time.column if isinstance(clause, TimeClause) else clause.column


def _wanted(clause: Clause, layout: Layout) -> list[tuple[Any, Any]]:
    """Half-open ranges of values; a single value has no upper end of its own."""
    type_name = type_of(_column(clause), layout.types)
    match clause:
        case TimeClause():
            return [(parse_value(low, type_name), parse_value(high, type_name)) for low, high in clause.ranges]
        case ValueClause():
            return [(value, _Upto(value)) for value in (parse_value(each, type_name) for each in clause.values)]
        case _:
            assert_never(clause)


@dataclass(frozen=True, slots=True)
class _Upto:
    value: Any


def _before(value: Any, high: Any) -> bool:
    return bool(value <= high.value) if isinstance(high, _Upto) else bool(value < high)


def _not_truncated(high: Any) -> Any:
    """No value of the file is greater."""
    if not isinstance(high, datetime):
        return high
    last = datetime.max.replace(tzinfo=high.tzinfo)
    return high + _TRUNCATED if high <= last - _TRUNCATED else last


def _value(found: Any, type_name: str) -> Any:
    """A value of the statistics; None where they cannot be trusted to bound it."""
    if found is None or type_name in ("float", "double", "boolean"):
        return None
    try:
        return _read(found, type_name)
    except (ValueError, OverflowError):
        # A time before the year 1 or after 9999, for example of a zone that got there first.
        return None


def _read(found: Any, type_name: str) -> Any:
    match type_name:
        case "date":
            return date.fromisoformat(found)
        case "timestamp":
            return datetime.fromisoformat(found).astimezone(UTC)
        case "timestamp_ntz":
            return datetime.fromisoformat(found).replace(tzinfo=None)
        case _:
            return Decimal(found) if type_name.startswith("decimal") else found
