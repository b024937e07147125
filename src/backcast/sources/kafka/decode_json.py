"""JSON with a declared schema. One pass of Spark's own parser decides about nearly every record.

The parser ignores what follows an object. So the last brace is taken away and a field of our own with a new one put in
its place: only in a text that is one object to its end is that field one of the outermost. Exact reasons take a parse
for each field, so they are worked out only for records that are refused.

Rules: numbers must fit their type; decimals must not need rounding (six places beyond the declared ones are looked at,
so the noise of a double passes); a TIMESTAMP is ISO 8601 with a zone, and digits beyond microseconds are cut; a DATE is
`yyyy-MM-dd`. A STRING takes an integer or a boolean as its text, never an object, an array or a number with a point. A
field that is null is not missing. Names are compared exactly. Policies for missing and unknown fields are about the
outermost object; a field that is there twice is noticed under `refuse` and `keep`, else the last one counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import DataType, StructField, StructType

from backcast.errors import InvalidRequest
from backcast.model.source import Lack, Layout, Surplus
from backcast.sources.kafka.decoded import Decoded, Side
from backcast.sources.kafka.json_types import converted, field_is_sound, hides_texts, parsed_as, refuse_unreadable
from backcast.spark.predicates import quote, text_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EXTRA = "_extra"
_BAD, _END = "backcast bad", "backcast end"
_EMPTY = r"^\s*[{]\s*[}]\s*$"
_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _BAD,
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
    # Decimals may come as text, and in most locales a comma in it is skipped: "1,5" would be 15.
    "locale": "de-CH",
}
_MAP = "map({})".format(", ".join(f"'{key}', '{value}'" for key, value in _OPTIONS.items()))


def decode_json(frame: DataFrame, layout: Layout, side: Side) -> Decoded:
    """The declared columns, and `_extra` under `keep`."""
    fields = declared(layout.schema)
    text, parsed = f"CAST({side.column} AS STRING)", side.named("parsed")
    made = {parsed: _parse(side, text, fields)}
    if layout.surplus is not Surplus.IGNORE:
        made[side.named("keys")] = f"json_object_keys({text})"
    first = frame.selectExpr("*", *(f"{sql} AS {name}" for name, sql in made.items()))
    columns = {each.name: side.named(f"f{number}") for number, each in enumerate(fields)}
    second = first.selectExpr(
        "*", *(f"{converted(_of(parsed, each), each.dataType)} AS {columns[each.name]}" for each in fields)
    )
    whole = layout.surplus is Surplus.KEEP or hides_texts(StructType(fields))
    checks = [
        _is_object(parsed, text),
        *([f"is_valid_utf8({text})"] if whole else []),
        *_sound(fields, parsed, columns, text),
        *_named(layout, fields, columns, text, side),
    ]
    kept = {EXTRA: _extra(text, fields, side)} if layout.surplus is Surplus.KEEP else {}
    problem = _problem(layout, fields, text, side)
    return Decoded(second, {**columns, **kept}, f"coalesce({' AND '.join(checks)}, false)", problem)


def declared(schema: str) -> list[StructField]:
    """The columns that the DDL names. Raises InvalidRequest where JSON cannot be read into them exactly."""
    kind = DataType.fromDDL(schema)
    if not isinstance(kind, StructType) or not kind.fields:
        raise InvalidRequest(f"the JSON schema {schema!r} names no columns", hint="such as `id BIGINT, at TIMESTAMP`")
    refuse_unreadable(kind, "")
    return kind.fields


def _of(row: str, field: StructField) -> str:
    return f"{row}.{quote(field.name)}"


def _parse(side: Side, text: str, fields: list[StructField]) -> str:
    columns = ", ".join(f"{quote(each.name)} {parsed_as(each.dataType)}" for each in fields)
    schema = text_literal(f"{columns}, {quote(_END)} BOOLEAN, {quote(_BAD)} STRING")
    cut = "substring({0}, 1, octet_length({0}) - 1)"
    trimmed = f"CAST({_trimmed(text)} AS BINARY)"
    inner = f"if(endswith({text}, '}}'), {cut.format(side.column)}, {cut.format(trimmed)})"
    end = f',"{_END}":true}}'.encode().hex()
    return f"from_json(CAST(concat({inner}, X'{end}') AS STRING), {schema}, {_MAP})"


def _trimmed(text: str) -> str:
    return f"rtrim({text_literal(' ' + chr(9) + chr(10) + chr(13))}, {text})"


def _is_object(parsed: str, text: str) -> str:
    """One object and nothing else, each declared field of which the parser could take."""
    ends = f"(endswith({text}, '}}') OR endswith({_trimmed(text)}, '}}'))"
    is_empty = f"{text} RLIKE {text_literal(_EMPTY)}"
    return f"(({parsed}.{quote(_BAD)} IS NULL AND {parsed}.{quote(_END)} AND {ends}) OR {is_empty})"


def _sound(fields: list[StructField], row: str, columns: dict[str, str], text: str) -> list[str]:
    checks = [field_is_sound(_of(row, each), columns[each.name], each, text) for each in fields]
    return [check for check in checks if check]


def _wrapped(kind: str) -> str:
    """Another way to the same, for reasons: the text as the only element of an array in an object."""
    schema = text_literal(f"v ARRAY<{kind}>, {quote(_BAD)} STRING")
    return f"from_json(concat('{{\"v\":[', text, ']}}'), {schema}, {_MAP})"


def _is_only_one(parsed: str) -> str:
    return f"{parsed}.{quote(_BAD)} IS NULL AND size({parsed}.v) = 1 AND get({parsed}.v, 0) IS NOT NULL"


def _names(fields: list[StructField]) -> str:
    return f"array({', '.join(text_literal(each.name) for each in fields)})"


def _named(layout: Layout, fields: list[StructField], columns: dict[str, str], text: str, side: Side) -> list[str]:
    names, keys = _names(fields), side.named("keys")
    checks = []
    if layout.surplus is not Surplus.IGNORE:
        surplus = f" AND size(array_except({keys}, {names})) = 0" if layout.surplus is Surplus.REFUSE else ""
        checks.append(f"({keys} = {names} OR (size(array_distinct({keys})) = size({keys}){surplus}))")
    if layout.lack is Lack.REFUSE:
        filled = " AND ".join(f"{columns[each.name]} IS NOT NULL" for each in fields)
        checks.append(f"(({filled}) OR size(array_except({names}, json_object_keys({text}))) = 0)")
    return checks


def _extra(text: str, fields: list[StructField], side: Side) -> str:
    """Unknown fields by name as JSON text; null where there are none. A VARIANT keeps 38 digits, a STRING does not."""
    names, keys = _names(fields), side.named("keys")
    every = f"from_json({text}, 'MAP<STRING, VARIANT>', {_MAP})"
    unknown = f"map_filter({every}, (name, found) -> NOT array_contains({names}, name))"
    none = f"{keys} = {names} OR size(array_except({keys}, {names})) = 0"
    return f"if({none}, NULL, transform_values({unknown}, (name, found) -> to_json(found)))"


def _problem(layout: Layout, fields: list[StructField], text: str, side: Side) -> str:
    """In a lambda, which Spark interprets: as generated code it makes the loop too big for Java's second compiler."""
    keys, names = "json_object_keys(text)", _names(fields)
    told = []
    if layout.surplus is Surplus.REFUSE:
        told.append(_listed("has fields that are not declared: ", f"array_except({keys}, {names})"))
    if layout.surplus is not Surplus.IGNORE:
        twice = f"filter(array_distinct({keys}), one -> size(filter({keys}, other -> other = one)) > 1)"
        told.append(_listed("has fields more than once: ", twice))
    if layout.lack is Lack.REFUSE:
        told.append(_listed("lacks fields: ", f"array_except({names}, {keys})"))
    told.extend(_field_problem(each) for each in fields)
    whole = "get(transform(array({}), parsed -> coalesce({}, false)), 0)"
    is_object = whole.format(_wrapped("MAP<STRING, STRING>"), _is_only_one("parsed"))
    reason = (
        f"CASE WHEN NOT is_valid_utf8(text) THEN 'is not UTF-8' WHEN NOT {is_object} THEN 'is not one JSON object' "
        f"ELSE coalesce(nullif(concat_ws('; ', {', '.join(told)}), ''), 'does not fit its schema') END"
    )
    return f"concat('the {side.word} ', get(transform(array({text}), text -> {reason}), 0))"


def _listed(words: str, found: str) -> str:
    return f"if(size({found}) > 0, concat('{words}', array_join({found}, ', ')), NULL)"


def _field_problem(field: StructField) -> str:
    """Whether the record is fine when nothing but this field is declared."""
    row = "get(parsed.v, 0)"
    done = converted(_of(row, field), field.dataType)
    checks = [_is_only_one("parsed"), field_is_sound(_of(row, field), done, field, "text")]
    parse = _wrapped(parsed_as(StructType([field])))
    all_checks = " AND ".join(check for check in checks if check)
    sound = f"get(transform(array({parse}), parsed -> coalesce({all_checks}, false)), 0)"
    kind = field.dataType.simpleString() + ("" if field.nullable else " NOT NULL")
    return f"if({sound}, NULL, {text_literal(f'has a field {field.name} that is not {kind}')})"
