"""Both sides of a comparison with the same columns, each row with its part, its hash and the hash of its key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StructField, StructType

from backcast.model.diff import MASK, DiffRules
from backcast.model.masked import hides
from backcast.spark.diff_align import Alignment
from backcast.spark.diff_cells import is_hashed
from backcast.spark.digest import digest_columns, row_hash
from backcast.spark.predicates import text_literal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from backcast.spark.diff_parts import Parts

PART, HASH, KEY_HASH, TEXTS, ROW, SIDE = "backcast_part", "hash", "key_hash", "texts", "row", "side"
_LONGEST_TEXT = 200


def value(position: int) -> str:
    """The name of a compared column, whatever it is called in the table."""
    return f"v{position}"


@dataclass(frozen=True, slots=True)
class Sides:
    """What is compared and how. `left` and `right` are the rows as they are stored."""

    left: DataFrame
    right: DataFrame
    alignment: Alignment
    parts: Parts
    rules: DiffRules

    @property
    def schema(self) -> StructType:
        return self.alignment.schema

    @property
    def key(self) -> tuple[str, ...]:
        """The declared key, when both sides have all of it; else none."""
        key = self.rules.key
        return key if set(key) <= set(self.schema.names) else ()

    @property
    def key_positions(self) -> list[int]:
        return [self.schema.names.index(name) for name in self.key]

    @property
    def _values(self) -> StructType:
        """What is compared, by position: a table's own names may be any, ours too."""
        return StructType([StructField(value(at), each.dataType) for at, each in enumerate(self.schema.fields)])

    def aligned(self, side: DataFrame) -> DataFrame:
        """The part, then the columns that are compared, as `value` names them."""
        label = F.expr(self.parts.label(types_of(side))).alias(PART)
        columns = self.alignment.columns(side.schema)
        return side.select(label, *(each.alias(value(at)) for at, each in enumerate(columns)))

    def hashed(self, side: DataFrame, *more: Column) -> DataFrame:
        """Part, hashes and values, and what else is wanted of the aligned row."""
        keys = StructType([self._values[at] for at in sorted(self.key_positions)])
        whole = row_hash(self._values)
        values = [_comparable(field.name, field.dataType).alias(field.name) for field in self._values.fields]
        return self.aligned(side).select(
            PART,
            whole.alias(HASH),
            (row_hash(keys) if self.key else whole).alias(KEY_HASH),
            *values,
            *more,
        )

    def texts(self) -> Column:
        """Every cell as text, in order; masked ones are masked before they leave Spark."""
        cells = [
            text_literal(MASK) if hides(self.rules.masked, field.name) else _text(value(at), field.dataType)
            for at, field in enumerate(self.schema.fields)
        ]
        return F.expr(f"array({', '.join(cells)})").alias(TEXTS)

    def whole(self) -> Column:
        """The row itself, as a struct."""
        return F.struct(*(F.col(value(at)).alias(name) for at, name in enumerate(self.schema.names))).alias(ROW)

    def restricted(self, names: list[str]) -> Sides:
        """Only rows of these parts; files of others need not be read."""
        left, right = (self._only(side, names) for side in (self.left, self.right))
        return Sides(left, right, self.alignment, self.parts, self.rules)

    def _only(self, side: DataFrame, names: list[str]) -> DataFrame:
        condition = self.parts.only(names, types_of(side))
        return side if condition is None else side.where(condition)

    def digests(self, side: DataFrame, number: int) -> DataFrame:
        """One row for each part that has rows: its name, the sums of its digest and the number of the side."""
        summed = self.aligned(side).groupBy(PART).agg(*digest_columns(self._values))
        return summed.withColumn(SIDE, F.lit(number))


def types_of(frame: DataFrame) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in frame.schema.fields}


def _comparable(name: str, kind: DataType) -> Column:
    if not is_hashed(kind):
        return F.col(name)
    # The hash of a row with nothing but this column: maps as sorted entries.
    return row_hash(StructType().add(name, kind))


def _text(name: str, kind: DataType) -> str:
    shown = f"hex({name})" if isinstance(kind, BinaryType) else f"CAST({name} AS STRING)"
    return f"substring({shown}, 1, {_LONGEST_TEXT})"
