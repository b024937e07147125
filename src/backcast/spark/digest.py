"""The digest of `backcast.model.digest` as Spark expressions: one pass, no sort, no shuffle of rows.

A row's hash is one xxhash64 over all columns in field order and over which of them are null. Plain xxhash64 skips
nulls, so that ('a', null, 'b') and ('a', 'b', null) would be equal; it knows no lengths, so that [[1], [2]] and
[[1, 2]] would be; it rejects maps. So nulls are told as bits of numbers or, in nested values, as (isnull(c), c);
structs are flattened, arrays hashed element by element with their size, maps as sorted entries.
0.0 and -0.0 are the same value, and so is every NaN, as in Spark's own comparison.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from backcast.errors import InvalidRequest
from backcast.model.digest import Digest
from backcast.spark.predicates import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

ROWS, HIGH, LOW = "backcast_rows", "backcast_high", "backcast_low"
KEY = "backcast_key"
_NESTED = (StructType, ArrayType, MapType)
_UNHASHABLE = ("variant",)
_BITS = 62
"""Columns whose nulls one number tells. Hashing a flag for each costs as much as hashing its value."""


def digest_columns(schema: StructType) -> list[Column]:
    """The three aggregates of a digest over rows of that schema, for `agg` or `observe`."""
    return sums_of(row_hash(schema))


def sums_of(hashed: Column) -> list[Column]:
    """The aggregates of a digest over anything that has a 64-bit hash."""
    # Both halves signed: sums of unsigned halves overflow a bigint after 2^31 rows.
    return [
        F.count(F.lit(1)).alias(ROWS),
        F.sum(F.shiftright(hashed, 32)).alias(HIGH),
        F.sum(F.shiftright(F.shiftleft(hashed, 32), 32)).alias(LOW),
    ]


def digest_by(frame: DataFrame, key_column: Column) -> DataFrame:
    """One digest for each value of the key, over all columns of the frame; the value is in column `backcast_key`."""
    return frame.groupBy(key_column.alias(KEY)).agg(*digest_columns(frame.schema))


def digest_of_row(row: Row | Mapping[str, Any]) -> Digest:
    """The digest in a result of `digest_columns` or `sums_of`; an empty input has sums of zero."""
    return Digest(rows=row[ROWS], high=str(row[HIGH] or 0), low=str(row[LOW] or 0))


def row_hash(schema: StructType) -> Column:
    """Equal rows have equal hashes; of others, as good as none."""
    if not any(isinstance(field.dataType, _NESTED) or _is_unhashable(field.dataType) for field in schema.fields):
        # As one text: column by column it is a dozen calls to the JVM for each.
        plain = [quote(field.name) for field in schema.fields]
        return F.expr(f"xxhash64({', '.join([*plain, *_nulls(plain)])})") if plain else F.lit(0).cast("bigint")
    parts = [part for field in schema.fields for part in _parts(F.col(quote(field.name)), field.dataType)]
    return F.xxhash64(*parts)


def _nulls(names: list[str]) -> list[str]:
    """Numbers that say which of the columns are null, a bit for each."""
    flags = [f"IF(isnull({name}), {1 << at % _BITS}L, 0L)" for at, name in enumerate(names)]
    return [" + ".join(flags[start : start + _BITS]) for start in range(0, len(flags), _BITS)]


def _parts(value: Column, kind: DataType) -> list[Column]:
    """What is hashed for one value, in order. Injective up to hash collisions of nested elements."""
    if isinstance(kind, StructType):
        return [
            F.isnull(value),
            *(part for field in kind.fields for part in _parts(value.getField(field.name), field.dataType)),
        ]
    if isinstance(kind, ArrayType):
        element = kind.elementType
        hashes = F.transform(value, lambda each: F.xxhash64(*_parts(each, element)))
        return [F.isnull(value), _size(value), hashes]
    if isinstance(kind, MapType):
        key, item = kind.keyType, kind.valueType
        entries = F.transform(
            F.map_entries(value),
            lambda entry: F.xxhash64(*_parts(entry.getField("key"), key), *_parts(entry.getField("value"), item)),
        )
        return [F.isnull(value), _size(value), F.array_sort(entries)]
    if _is_unhashable(kind):
        raise InvalidRequest(f"no digest for columns of type {kind.simpleString()}", type=kind.simpleString())
    return [F.isnull(value), value]


def _is_unhashable(kind: DataType) -> bool:
    return kind.typeName() in _UNHASHABLE


def _size(value: Column) -> Column:
    """Spark's answer for a null collection depends on two settings; this one does not."""
    return F.when(F.isnull(value), F.lit(-1)).otherwise(F.size(value))
