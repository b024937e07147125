"""Predicates as Spark SQL: quoted identifiers, literals in the column's own type, nothing pasted in as it came."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, TypeVar, assert_never

from backcast.errors import InvalidRequest, UnknownName
from backcast.model.scope import Clause, Predicate, TimeClause, ValueClause

if TYPE_CHECKING:
    from pyspark.sql import Column

Value = bool | int | float | Decimal | str | date | datetime
Types = Mapping[str, str]
"""Column names with Spark's simple type strings."""

_INTEGERS = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
_BITS = {"tinyint": 8, "smallint": 16, "int": 64, "bigint": 64}
"""What a literal of the type can hold. One for an int may be a bigint: seconds from 1970 leave its range in 2038."""
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_TEXT = re.compile(r"(string|char\(\d+\)|varchar\(\d+\))")
_BOOLEANS = {"true": True, "false": False}
_T = TypeVar("_T")


def quote(name: str) -> str:
    """The name as one quoted SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def type_of(column: str, types: Types) -> str:
    """The column's type; UnknownName when the table has no such column."""
    if column not in types:
        raise UnknownName(f"no column {column!r}", hint=f"columns are: {', '.join(types)}", column=column)
    return types[column]


def parse_value(text: str, type_name: str) -> Value:
    """The text as a value of the column's type. A time without offset for a column with zone is taken as UTC."""
    try:
        return _parse(text, type_name)
    except (ValueError, KeyError, InvalidOperation, OverflowError) as error:
        raise InvalidRequest(f"{text!r} is not a value of type {type_name}", value=text, type=type_name) from error


def _parse(text: str, type_name: str) -> Value:
    if type_name in _INTEGERS:
        return _integer(text, _BITS[type_name])
    if _TEXT.fullmatch(type_name):
        return text
    if decimal := _DECIMAL.fullmatch(type_name):
        return _decimal(text, int(decimal[2]))
    match type_name:
        case "date":
            return date.fromisoformat(text)
        case "timestamp":
            instant = datetime.fromisoformat(text)
            return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
        case "timestamp_ntz":
            wall = datetime.fromisoformat(text)
            if wall.tzinfo is not None:
                raise ValueError(text)
            return wall
        case "boolean":
            return _BOOLEANS[text.lower()]
        case "float" | "double":
            number = float(text)
            if not (float("-inf") < number < float("inf")):
                raise ValueError(text)
            return number
        case _:
            raise InvalidRequest(f"a column of type {type_name} cannot be compared with a value", type=type_name)


def _integer(text: str, bits: int) -> int:
    number = int(text)
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(text)
    return number


def _decimal(text: str, scale: int) -> Decimal:
    number = Decimal(text)
    exact = number.quantize(Decimal(1).scaleb(-scale))
    if exact != number:
        raise ValueError(text)
    return exact


def literal(text: str, type_name: str) -> str:
    """The text as a SQL literal of exactly the column's type, so that comparing casts neither side."""
    value = parse_value(text, type_name)
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return f"{value}{_INTEGERS[type_name]}"
        case float():
            return f"CAST({value!r}D AS {type_name})"
        case Decimal():
            return f"CAST({value:f}BD AS {type_name})"
        case datetime():
            name = "TIMESTAMP" if value.tzinfo else "TIMESTAMP_NTZ"
            return f"{name} '{value.isoformat(timespec='microseconds')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case str():
            return text_literal(value)
        case _:
            assert_never(value)


def text_literal(value: str) -> str:
    """The text as a SQL literal. Whether a backslash escapes depends on a Spark setting; bytes do not."""
    if value.isprintable() and "'" not in value and "\\" not in value:
        return f"'{value}'"
    return f"CAST(X'{value.encode().hex()}' AS STRING)"


def balanced(parts: Sequence[_T], join: Callable[[_T, _T], _T]) -> _T:
    """Join many parts as a tree of small depth: a chain of a thousand ends in a stack overflow somewhere."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return join(balanced(parts[:middle], join), balanced(parts[middle:], join))


def to_sql(predicate: Predicate, types: Types) -> str:
    """The predicate as a SQL condition; `true` when every row matches."""
    clauses = [_clause(clause, types) for clause in predicate.clauses]
    return balanced(clauses, lambda left, right: f"({left} AND {right})") if clauses else "true"


def to_column(predicate: Predicate, types: Types) -> Column:
    """The predicate as a Spark column."""
    from pyspark.sql import functions as F

    return F.expr(to_sql(predicate, types))


def _clause(clause: Clause, types: Types) -> str:
    match clause:
        case TimeClause():
            return _time(clause, types)
        case ValueClause():
            return _values(clause, types)
        case _:
            assert_never(clause)


def _time(clause: TimeClause, types: Types) -> str:
    type_name, name = type_of(clause.time.column, types), quote(clause.time.column)
    ranges = [
        f"({name} >= {literal(low, type_name)} AND {name} < {literal(high, type_name)})" for low, high in clause.ranges
    ]
    return balanced(ranges, lambda left, right: f"({left} OR {right})") if ranges else "false"


def _values(clause: ValueClause, types: Types) -> str:
    type_name = type_of(clause.column, types)
    values = ", ".join(literal(value, type_name) for value in clause.values)
    return f"({quote(clause.column)} IN ({values}))" if values else "false"
