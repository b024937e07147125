"""Two schemas brought together: which columns can be compared, as which type, and what to tell about the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    FractionalType,
    IntegerType,
    IntegralType,
    LongType,
    MapType,
    NullType,
    NumericType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from backcast.model.diff import Ignored, NamedType, Retyped, SchemaDiff
from backcast.spark.predicates import quote

if TYPE_CHECKING:
    from pyspark.sql import Column

_DIGITS: dict[type[DataType], int] = {ByteType: 3, ShortType: 5, IntegerType: 10, LongType: 20}
_WIDTH = (ByteType, ShortType, IntegerType, LongType)
_MOMENTS = (DateType, TimestampNTZType, TimestampType)
_TEXTUAL = (NumericType, BooleanType, DateType, TimestampType, TimestampNTZType)
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class Alignment:
    """The columns that both sides have, in the left side's order and as the type in which they are compared."""

    schema: StructType
    changes: SchemaDiff

    @property
    def is_trivial(self) -> bool:
        """Whether both sides are compared exactly as they are stored."""
        return self.changes == SchemaDiff()

    def columns(self, of: StructType) -> list[Column]:
        """What to select of a side with that schema, in order."""
        own = {field.name: field.dataType for field in of.fields}
        picked = []
        for field in self.schema.fields:
            column = F.col(quote(field.name))
            picked.append(_as(column, own[field.name], field.dataType))
        return picked


def align(left: StructType, right: StructType, ignored: frozenset[str] = frozenset()) -> Alignment:
    """Never raises because of what the schemas are."""
    before, after = ({field.name: field.dataType for field in side.fields} for side in (left, right))
    fields, retyped, left_out = [], [], []
    for name, kind in before.items():
        if name not in after or name in ignored:
            continue
        if _holds_variant(kind) or _holds_variant(after[name]):
            left_out.append(Ignored(name=name, reason="values of type variant have no order and no digest"))
            continue
        shared = shared_type(kind, after[name])
        if kind.simpleString() != after[name].simpleString():
            as_ = None if shared is None else shared.simpleString()
            told = Retyped(name=name, before=kind.simpleString(), after=after[name].simpleString(), compared_as=as_)
            retyped.append(told)
        if shared is not None:
            fields.append(StructField(name, shared))
    return Alignment(
        StructType(fields),
        SchemaDiff(
            added=_only(after, before, ignored),
            removed=_only(before, after, ignored),
            retyped=tuple(retyped),
            ignored=tuple(left_out),
        ),
    )


def _as(column: Column, kind: DataType, shared: DataType) -> Column:
    """The value in the type that both sides can be compared in. Fields of structs are picked by their names."""
    if kind.simpleString() == shared.simpleString():
        return column
    if isinstance(kind, StructType) and isinstance(shared, StructType):
        own = {field.name: field.dataType for field in kind.fields}
        picked = [_as(column.getField(each.name), own[each.name], each.dataType).alias(each.name) for each in shared]
        return F.when(column.isNotNull(), F.struct(*picked))
    if isinstance(kind, ArrayType) and isinstance(shared, ArrayType):
        before, after = kind.elementType, shared.elementType
        return F.transform(column, lambda each: _as(each, before, after))
    if isinstance(kind, MapType) and isinstance(shared, MapType):
        keys, values = (kind.keyType, shared.keyType), (kind.valueType, shared.valueType)
        entries = F.transform(
            F.map_entries(column), lambda each: F.struct(_as(each["key"], *keys), _as(each["value"], *values))
        )
        return F.map_from_entries(entries)
    return column.cast(shared)


def _only(of: dict[str, DataType], other: dict[str, DataType], ignored: frozenset[str]) -> tuple[NamedType, ...]:
    return tuple(
        NamedType(name=name, type=kind.simpleString())
        for name, kind in of.items()
        if name not in other and name not in ignored
    )


def shared_type(left: DataType, right: DataType) -> DataType | None:
    """A type that holds the values of both without loss, or text where one side is text; None when there is none."""
    if left == right or left.simpleString() == right.simpleString():
        return left
    if isinstance(left, NullType) or isinstance(right, NullType):
        return right if isinstance(left, NullType) else left
    if isinstance(left, NumericType) and isinstance(right, NumericType):
        return _number(left, right)
    if isinstance(left, _MOMENTS) and isinstance(right, _MOMENTS):
        # A time without zone is taken as UTC, as everywhere else.
        zoned = isinstance(left, TimestampType) or isinstance(right, TimestampType)
        return TimestampType() if zoned else TimestampNTZType()
    for text, other in ((left, right), (right, left)):
        if isinstance(text, StringType) and isinstance(other, _TEXTUAL):
            return StringType()
    return _nested(left, right)


def _number(left: NumericType, right: NumericType) -> DataType:
    if isinstance(left, IntegralType) and isinstance(right, IntegralType):
        return max((left, right), key=lambda kind: _WIDTH.index(type(kind)))
    if isinstance(left, FloatType | DoubleType) or isinstance(right, FloatType | DoubleType):
        return DoubleType()
    scales = [_digits(kind)[1] for kind in (left, right)]
    whole = max(_digits(kind)[0] for kind in (left, right))
    if whole + max(scales) > _MOST_DIGITS:
        return DoubleType()
    return DecimalType(whole + max(scales), max(scales))


def _digits(kind: NumericType) -> tuple[int, int]:
    """Before and after the point."""
    if isinstance(kind, DecimalType):
        return kind.precision - kind.scale, kind.scale
    return _DIGITS[type(kind)], 0


def _nested(left: DataType, right: DataType) -> DataType | None:
    if isinstance(left, ArrayType) and isinstance(right, ArrayType):
        element = shared_type(left.elementType, right.elementType)
        return None if element is None else ArrayType(element)
    if isinstance(left, MapType) and isinstance(right, MapType):
        key, value = shared_type(left.keyType, right.keyType), shared_type(left.valueType, right.valueType)
        return None if key is None or value is None else MapType(key, value)
    if isinstance(left, StructType) and isinstance(right, StructType):
        # What only one side has, or what cannot be compared, is left out: the types say so.
        pairs = [(each.name, each.dataType, right[each.name].dataType) for each in left if each.name in right.names]
        kinds = [(name, shared_type(one, other)) for name, one, other in pairs]
        fields = [StructField(name, kind) for name, kind in kinds if kind is not None]
        return StructType(fields) if fields else None
    return None


def holds(kind: DataType, wanted: type[DataType] | tuple[type[DataType], ...]) -> bool:
    """Whether the type is, or has somewhere inside, one of these."""
    if isinstance(kind, wanted):
        return True
    if isinstance(kind, ArrayType):
        return holds(kind.elementType, wanted)
    if isinstance(kind, MapType):
        return holds(kind.keyType, wanted) or holds(kind.valueType, wanted)
    return isinstance(kind, StructType) and any(holds(field.dataType, wanted) for field in kind.fields)


def _holds_variant(kind: DataType) -> bool:
    return "variant" in kind.simpleString() and holds(kind, _variant())


def _variant() -> type[DataType]:
    from pyspark.sql.types import VariantType

    return VariantType


def is_number(kind: DataType) -> bool:
    return isinstance(kind, IntegralType | FractionalType)
