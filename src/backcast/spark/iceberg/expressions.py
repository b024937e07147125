"""Predicates as Iceberg expressions, with the same literals as their SQL."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, assert_never

from backcast.model.scope import Clause, Predicate, TimeClause, ValueClause
from backcast.spark.predicates import Types, Value, balanced, parse_value, type_of

if TYPE_CHECKING:
    from backcast.spark.iceberg.handle import TableHandle


def to_expression(handle: TableHandle, predicate: Predicate, types: Types) -> Any:
    """The predicate as an unbound expression; always true when it has no clause."""
    expressions = handle.java("expressions.Expressions")
    parts = [clause_expression(handle, clause, types) for clause in predicate.clauses]
    return balanced(parts, getattr(expressions, "and")) if parts else expressions.alwaysTrue()


def clause_expression(handle: TableHandle, clause: Clause, types: Types) -> Any:
    """One clause as an unbound expression."""
    expressions = handle.java("expressions.Expressions")
    match clause:
        case TimeClause():
            name, parts = clause.time.column, []
            type_name = type_of(name, types)
            for low, high in clause.ranges:
                start = expressions.greaterThanOrEqual(name, java_value(parse_value(low, type_name)))
                end = expressions.lessThan(name, java_value(parse_value(high, type_name)))
                parts.append(getattr(expressions, "and")(start, end))
        case ValueClause():
            type_name = type_of(clause.column, types)
            parts = [
                expressions.equal(clause.column, java_value(parse_value(each, type_name))) for each in clause.values
            ]
        case _:
            assert_never(clause)
    return balanced(parts, getattr(expressions, "or")) if parts else expressions.alwaysFalse()


def java_value(value: Value) -> bool | int | float | str:
    """What Iceberg converts to the column's type when it binds: ISO text for everything but numbers and booleans."""
    match value:
        case bool() | int() | float() | str():
            return value
        case Decimal():
            return f"{value:f}"
        case datetime():
            return value.isoformat(timespec="microseconds")
        case date():
            return value.isoformat()
        case _:
            assert_never(value)
