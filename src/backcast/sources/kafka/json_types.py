"""Declared types as SQL over what Spark's JSON parser makes of them.

The parser is lenient where it should not be: it rounds decimals, takes numbers for seconds, reads 200 as a TINYINT of
-56, makes 1e400 infinite and turns objects into text. So some types are parsed as another, converted afterwards, and
each value that needs it is checked. What is unlikely to be wrong is checked cheaply first, and exactly only then.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from backcast.errors import InvalidRequest
from backcast.spark.predicates import quote, text_literal

_MOST_DIGITS = 38
_COMPACT_DIGITS = 18
"""Spark keeps decimals of so many digits in a long, which is several times faster."""
_SPARE_DIGITS = 6
"""Decimals are parsed with at least so many places more than declared; what is left there did not fit."""
_REPLACED = "\N{REPLACEMENT CHARACTER}"
"""What the parser makes of bytes that are not UTF-8."""
_TEXTS = (TimestampType, TimestampNTZType, DateType)
_PLAIN = (BooleanType, ShortType, IntegerType, LongType, FloatType, DoubleType, StringType, BinaryType, *_TEXTS)
_ZONE = "[zZ]$|[+-][0-9]{2}(:?[0-9]{2})?$"
_CLEAR_ZONE = "[zZ]$|[+-][0-9]{2}:[0-9]{2}$"
_INFINITE = "double('Infinity')"


def refuse_unreadable(kind: DataType, where: str) -> None:
    """Raise InvalidRequest for a type that JSON cannot be read into exactly."""
    match kind:
        case StructType():
            for field in kind.fields:
                refuse_unreadable(field.dataType, f"{where}.{field.name}" if where else field.name)
        case ArrayType():
            refuse_unreadable(kind.elementType, f"{where}[]")
        case MapType():
            if not isinstance(kind.keyType, StringType):
                raise InvalidRequest(f"field {where}: names of fields are the keys of a map, so they are STRING")
            refuse_unreadable(kind.valueType, f"{where}[]")
        case DecimalType():
            if where.endswith("[]") and not _has_spare_digits(kind):
                most = _MOST_DIGITS - _SPARE_DIGITS
                raise InvalidRequest(
                    f"field {where}: inside arrays and maps a decimal has at most {most} digits",
                    hint="declare STRING and cast it in the transform",
                )
        case _ if type(kind) in _PLAIN:
            pass
        case _:
            raise InvalidRequest(
                f"field {where}: JSON is not read into {kind.simpleString()}",
                hint="use BOOLEAN, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, STRING, BINARY, DATE, TIMESTAMP, "
                "TIMESTAMP_NTZ, STRUCT, ARRAY or MAP",
            )


def _has_spare_digits(kind: DecimalType) -> bool:
    return kind.precision + _SPARE_DIGITS <= _MOST_DIGITS


def hides_texts(kind: DataType) -> bool:
    """Whether texts are in arrays or maps, where they are not looked at one by one."""
    match kind:
        case StructType():
            return any(hides_texts(each.dataType) for each in kind.fields)
        case ArrayType():
            return isinstance(kind.elementType, StringType) or _has_texts(kind.elementType)
        case _:
            return isinstance(kind, MapType)


def _has_texts(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(isinstance(each.dataType, StringType) or _has_texts(each.dataType) for each in kind.fields)
    return hides_texts(kind)


def parsed_as(kind: DataType) -> str:
    """What the parser is asked for, as DDL."""
    match kind:
        case StructType():
            return f"STRUCT<{', '.join(f'{quote(each.name)}: {parsed_as(each.dataType)}' for each in kind.fields)}>"
        case ArrayType():
            return f"ARRAY<{parsed_as(kind.elementType)}>"
        case MapType():
            return f"MAP<STRING, {parsed_as(kind.valueType)}>"
        case DecimalType():
            compact = kind.precision + _SPARE_DIGITS <= _COMPACT_DIGITS
            digits = _COMPACT_DIGITS if compact else _MOST_DIGITS
            return f"DECIMAL({digits}, {kind.scale + digits - kind.precision})"
        case _ if isinstance(kind, _TEXTS):
            return "STRING"
        case _:
            return kind.simpleString()


def converted(value: str, kind: DataType, depth: int = 0) -> str:
    """A parsed value in its declared type; null when it has none. Never fails, in ANSI mode neither."""
    if not _needs_conversion(kind):
        return value
    each = f"each{depth}"
    match kind:
        case StructType():
            fields = ", ".join(
                f"{text_literal(field.name)}, {converted(f'{value}.{quote(field.name)}', field.dataType, depth)}"
                for field in kind.fields
            )
            return f"if({value} IS NULL, NULL, named_struct({fields}))"
        case ArrayType():
            return f"transform({value}, {each} -> {converted(each, kind.elementType, depth + 1)})"
        case MapType():
            return f"transform_values({value}, (key{depth}, {each}) -> {converted(each, kind.valueType, depth + 1)})"
        case _:
            return f"try_cast({value} AS {kind.simpleString()})"


def _needs_conversion(kind: DataType) -> bool:
    match kind:
        case StructType():
            return any(_needs_conversion(each.dataType) for each in kind.fields)
        case ArrayType():
            return _needs_conversion(kind.elementType)
        case MapType():
            return _needs_conversion(kind.valueType)
        case _:
            return isinstance(kind, (*_TEXTS, DecimalType))


def field_is_sound(value: str, done: str, field: StructField, text: str, depth: int = 0) -> str | None:
    """Whether a field holds what its declaration says. None: the parser is exact about it."""
    checks = [] if field.nullable else [f"{done} IS NOT NULL"]
    if check := _is_sound(value, done, field.dataType, text, depth):
        checks.append(f"({value} IS NULL OR {check})")
    if check := _as_written(value, field, text):
        checks.append(check)
    return " AND ".join(checks) or None


def _is_sound(value: str, done: str, kind: DataType, text: str, depth: int) -> str | None:
    """The same of a value that is not null."""
    each = f"each{depth}"
    match kind:
        case StructType():
            checks = [
                field_is_sound(
                    inner := f"{value}.{quote(one.name)}", converted(inner, one.dataType, depth), one, text, depth
                )
                for one in kind.fields
            ]
            return " AND ".join(check for check in checks if check) or None
        case ArrayType() | MapType():
            inside, items = (
                (kind.elementType, value) if isinstance(kind, ArrayType) else (kind.valueType, f"map_values({value})")
            )
            check = _is_sound(each, converted(each, inside, depth + 1), inside, text, depth + 1)
            return check and f"forall({items}, {each} -> {each} IS NULL OR ({check}))"
        case TimestampType():
            return f"({done} IS NOT NULL AND (endswith({value}, 'Z') OR {value} RLIKE '{_ZONE}'))"
        case TimestampNTZType():
            return f"({done} IS NOT NULL AND octet_length({value}) >= 10 AND NOT {value} RLIKE '{_CLEAR_ZONE}')"
        case DateType():
            return f"({done} IS NOT NULL AND CAST({done} AS STRING) = {value})"
        case DecimalType():
            return f"({value} <=> {done})"
        case FloatType() | DoubleType():
            return f"(abs({value}) < {_INFINITE})"
        case _:
            return None


def _as_written(value: str, field: StructField, text: str) -> str | None:
    """Checks that need the record's own text, asked only of values that look as if they were something else in it."""
    named = f'"\\Q{field.name}\\E"\\s*:\\s*'
    match field.dataType:
        case StringType():
            # Objects become text, and so do numbers, which pass through a double when they have a point.
            suspect = (
                f"startswith({value}, '{{') OR startswith({value}, '[') OR ({value} >= '-' AND {value} < ':' "
                f"AND contains({value}, '.') AND try_cast({value} AS DOUBLE) IS NOT NULL)"
            )
            is_text = f"(NOT ({suspect}) OR {text} RLIKE {text_literal(named + chr(34))})"
            is_whole = f"(NOT contains({value}, '{_REPLACED}') OR is_valid_utf8({text}))"
            return f"({value} IS NULL OR ({is_text} AND {is_whole}))"
        case DecimalType() if not _has_spare_digits(field.dataType):
            digits = f'"?-?[0-9]+([.][0-9]{{{field.dataType.scale}}}[0-9]*[1-9]|[0-9.]*[eE]-)'
            return f"({value} IS NULL OR NOT {text} RLIKE {text_literal(named + digits)})"
        case _:
            return None
