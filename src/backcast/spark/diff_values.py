"""How a column's values moved as a whole: nulls, sum, mean, least and greatest, on each side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    IntegralType,
    NumericType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from backcast.model.diff import Values
from backcast.model.masked import hides
from backcast.spark.diff_sides import SIDE, value
from backcast.spark.digest import HIGH, LOW, ROWS, digest_of_row, row_hash, sums_of
from backcast.spark.predicates import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from backcast.model.diff import SchemaDiff
    from backcast.model.digest import Digest
    from backcast.spark.diff_sides import Sides

_ORDERED = (NumericType, DateType, TimestampType, TimestampNTZType)


def values_of(sides: Sides, names: list[str]) -> list[dict[str, Values]]:
    """Of these columns, on the left and on the right; each side is read once, and nothing but these columns of it.

    One query for both.
    """
    wanted = {field.name: (at, field.dataType) for at, field in enumerate(sides.schema.fields) if field.name in names}
    told = _told(wanted, sides.rules.masked)
    summed = [
        sides.aligned(side).agg(*told, F.lit(number).alias(SIDE))
        for number, side in enumerate((sides.left, sides.right))
    ]
    rows = sorted(summed[0].unionAll(summed[1]).collect(), key=lambda row: int(row[SIDE]))
    measures = ("nulls", "sum", "mean", "min", "max")
    return [
        {
            name: Values(**{each: row[f"{each}{at}"] for each in measures if f"{each}{at}" in row})
            for name, (at, _) in wanted.items()
        }
        for row in (each.asDict() for each in rows)
    ]


def _told(wanted: dict[str, tuple[int, DataType]], masked: frozenset[str]) -> list[Column]:
    told: list[Column] = []
    for name, (at, kind) in wanted.items():
        column = F.col(value(at))
        told.append(F.count_if(column.isNull()).alias(f"nulls{at}"))
        if hides(masked, name):
            continue
        if isinstance(kind, NumericType):
            told.append(_sum(column, kind).cast("string").alias(f"sum{at}"))
            told.append(F.avg(column.cast("double")).cast("string").alias(f"mean{at}"))
        if isinstance(kind, _ORDERED) and not isinstance(kind, BooleanType):
            told += [F.min(column).cast("string").alias(f"min{at}"), F.max(column).cast("string").alias(f"max{at}")]
    return told


def _sum(column: Column, kind: NumericType) -> Column:
    """Never fails: a sum that is too great for its type is not told."""
    return F.try_sum(column.cast("decimal(38,0)")) if isinstance(kind, IntegralType) else F.try_sum(column)


def renamed(left: DataFrame, right: DataFrame, changes: SchemaDiff) -> tuple[tuple[str, str], ...]:
    """Columns that went and came with the same type and the same values, where only one pair fits."""
    types = {each.type for each in changes.removed} & {each.type for each in changes.added}
    gone = [each.name for each in changes.removed if each.type in types and "variant" not in each.type]
    come = [each.name for each in changes.added if each.type in types and "variant" not in each.type]
    if not gone or not come:
        return ()
    before, after = _digests(left, gone), _digests(right, come)
    pairs = [(old, new) for old, one in before.items() for new, other in after.items() if one == other]
    olds, news = [old for old, _ in pairs], [new for _, new in pairs]
    return tuple((old, new) for old, new in pairs if olds.count(old) == 1 and news.count(new) == 1)


def _digests(rows: DataFrame, names: list[str]) -> dict[str, tuple[str, Digest]]:
    """Type and digest of each column; none of a column without a value, which would fit any other."""
    kinds = {field.name: field.dataType for field in rows.schema.fields}
    told: list[Column] = []
    for at, name in enumerate(names):
        hashed = row_hash(StructType().add(f"c{at}", kinds[name]))
        told += [each.alias(f"d{at}_{number}") for number, each in enumerate(sums_of(hashed))]
        told.append(F.count(F.col(f"c{at}")).alias(f"known{at}"))
    row = rows.select(*(F.col(quote(name)).alias(f"c{at}") for at, name in enumerate(names))).agg(*told).collect()[0]
    found = {}
    for at, name in enumerate(names):
        sums = dict(zip((ROWS, HIGH, LOW), (row[f"d{at}_{number}"] for number in range(3)), strict=True))
        if row[f"known{at}"]:
            found[name] = (kinds[name].simpleString(), digest_of_row(sums))
    return found
