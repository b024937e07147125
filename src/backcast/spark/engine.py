"""The Engine port on Spark: what the flow wants to know about rows, in as few jobs as possible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import Observation, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from backcast.errors import Refused
from backcast.model.analysis import Analysis
from backcast.model.column import TimeColumn
from backcast.model.digest import EMPTY, Digest
from backcast.model.lineage import Stamped
from backcast.model.scope import Predicate
from backcast.model.table import Column
from backcast.model.time import Grain
from backcast.ports import Sifted
from backcast.spark.again import digest_again, shaken
from backcast.spark.by_time import counted_by_time
from backcast.spark.cancelling import cancelled_when
from backcast.spark.combining import combining
from backcast.spark.digest import KEY, digest_by, digest_columns, digest_of_row, row_hash
from backcast.spark.inspection import inspect, tables
from backcast.spark.observation import asked
from backcast.spark.predicates import quote, to_sql
from backcast.spark.sift import refuse_strangers, sift
from backcast.spark.within import kept

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, Row

_EXAMPLES = 5
_NUMBER = "backcast_number"
_OLD, _NEW, _HAD, _HAS = "backcast_old", "backcast_new", "backcast_had", "backcast_has"
_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_WIDER: dict[str, tuple[str, ...]] = {
    "tinyint": ("smallint", "int", "bigint", "float", "double"),
    "smallint": ("int", "bigint", "float", "double"),
    "int": ("bigint", "double"),
    "float": ("double",),
    "date": ("timestamp_ntz",),
    "void": (),
}


class SparkEngine:
    """Looks into rows on behalf of the flow. Holds no state."""

    def analyse(self, rows: DataFrame, topics: Sequence[DataFrame] = ()) -> Analysis:
        return Analysis(_columns(rows), *inspect(rows), *tables(rows), combines=combining(rows, topics))

    def cancelled_when(self, over: Callable[[], bool]) -> AbstractContextManager[Callable[[], bool]]:
        return cancelled_when(over)

    def conform(
        self, rows: DataFrame, columns: tuple[Column, ...], without_empty_texts: frozenset[str] = frozenset()
    ) -> DataFrame:
        doubled = sorted(name for name, times in Counter(rows.columns).items() if times > 1)
        if doubled:
            raise Refused(
                f"the transform returns more than one column called {', '.join(doubled)}",
                hint="select or rename so that each column of the table is there once",
            )
        have = {column.name: column for column in _columns(rows)}
        extra = sorted(have.keys() - {column.name for column in columns})
        missing = [column.name for column in columns if column.name not in have]
        if extra or missing:
            raise Refused(
                f"the transform's columns are not the table's: extra {extra or 'none'}, missing {missing or 'none'}",
                hint="return exactly the table's columns",
            )
        checked = rows.sparkSession.conf.get("spark.sql.ansi.enabled") == "true"
        selected = []
        for column in columns:
            was = have[column.name].type
            if was == column.type and column.name in without_empty_texts:
                texts = f"nullif(nullif({quote(column.name)}, ''), '{_NO_PARTITION}')"
                selected.append(f"{texts} AS {quote(column.name)}")
            elif was == column.type:
                selected.append(quote(column.name))
            elif (
                was == "void" or column.type in _WIDER.get(was, ()) or _decimal_fits(was, column.type, checked=checked)
            ):
                selected.append(f"CAST({quote(column.name)} AS {column.type}) AS {quote(column.name)}")
            else:
                raise Refused(
                    f"column {column.name!r} is {was} in the transform and {column.type} in the table",
                    hint=f"cast it in the transform: .cast('{column.type}')",
                )
        return rows.selectExpr(*selected)

    def stamp(self, rows: DataFrame, values: Mapping[str, Stamped]) -> DataFrame:
        return rows.withColumns({name: _literal(value) for name, value in values.items()}) if values else rows

    def sifted(self, rows: DataFrame, columns: frozenset[str], topics: frozenset[str]) -> Sifted:
        return sift(rows, columns, topics)

    def refuse_strangers(self, rejected: DataFrame, topics: frozenset[str]) -> None:
        refuse_strangers(rejected, topics)

    def newest(self, rows: DataFrame, key: tuple[str, ...], version: str) -> DataFrame:
        """Rows that differ and have both in common: always the same one of them, whatever the order they come in."""
        newest_first = [F.col(quote(version)).desc_nulls_last(), row_hash(rows.schema)]
        number = F.row_number().over(Window.partitionBy(*(quote(name) for name in key)).orderBy(*newest_first))
        return rows.withColumn(_NUMBER, number).where(F.col(_NUMBER) == 1).drop(_NUMBER)

    def within(self, rows: DataFrame, keep: Predicate, spare: Predicate) -> DataFrame:
        return rows.where(kept(keep, spare, _types(rows)))

    def observed(self, rows: DataFrame) -> tuple[DataFrame, Callable[[], Digest | None]]:
        observation = Observation()
        first, *others = digest_columns(rows.schema)
        return rows.observe(observation, first, *others), lambda: _read(observation)

    def digests(self, rows: DataFrame, parts: Mapping[str, Predicate]) -> dict[str, Digest]:
        """Parts are numbered by one CASE over their predicates, so that one grouped aggregation serves them all."""
        if len(parts) == 1:
            (name,) = parts
            return {name: digest_of_row(rows.agg(*digest_columns(rows.schema)).collect()[0])}
        types = _types(rows)
        names = list(parts)
        # One flat CASE: nested ones overflow the JVM's stack when a year is cut into days.
        cases = " ".join(f"WHEN {to_sql(parts[name], types)} THEN {number}" for number, name in enumerate(names))
        found = {row[KEY]: digest_of_row(row) for row in digest_by(rows, F.expr(f"CASE {cases} END")).collect()}
        return {name: found.get(number, EMPTY) for number, name in enumerate(names)}

    def counted_by_time(self, rows: DataFrame, column: TimeColumn, grain: Grain) -> tuple[dict[datetime, int], int]:
        return counted_by_time(rows, column, grain)

    def shaken(self, rows: DataFrame) -> DataFrame:
        return shaken(rows)

    def digest_again(self, rows: DataFrame) -> Digest:
        return digest_again(rows)

    def key_problems(self, rows: DataFrame, key: tuple[str, ...]) -> tuple[int, int, str]:
        """Rows of one key are numbered, and each key that has a second row is doubled.

        Sorting costs less than a hash table with an entry for every row, which is what unique keys make of a grouping.
        """
        columns = [F.col(quote(name)) for name in key]
        missing = F.lit(False)
        for column in columns:
            missing = missing | column.isNull()
        number = F.row_number().over(Window.partitionBy(*columns).orderBy(F.lit(1)))
        numbered = rows.select(*columns, number.alias(_NUMBER))
        doubled = (F.col(_NUMBER) == 2) & ~missing
        example = F.concat_ws(
            ", ",
            *(F.concat(F.lit(f"{name}="), column.cast("string")) for name, column in zip(key, columns, strict=True)),
        )
        row = numbered.agg(
            F.count(F.when(missing, 1)).alias("nulls"),
            F.count(F.when(doubled, 1)).alias("doubles"),
            F.min(F.when(doubled, example)).alias("example"),
        ).collect()[0]
        return row["nulls"], row["doubles"], row["example"] or ""

    def doubled(self, rows: DataFrame, key: tuple[str, ...]) -> DataFrame:
        columns = [F.col(quote(name)) for name in key]
        number = F.count(F.lit(1)).over(Window.partitionBy(*columns))
        named = reduce(lambda found, each: found.where(each.isNotNull()), columns, rows)
        return named.withColumn(_NUMBER, number).where(F.col(_NUMBER) > 1).drop(_NUMBER)

    def shared_keys(self, left: DataFrame, right: DataFrame, key: tuple[str, ...]) -> list[str]:
        names = list(key)
        shared = left.select(*names).join(right.select(*names), names, "left_semi").limit(_EXAMPLES).collect()
        return [_key_text(row, names) for row in shared]

    def changed_keys(self, before: DataFrame, after: DataFrame, key: tuple[str, ...], version: str) -> DataFrame:
        names, columns = list(key), [F.col(quote(name)) for name in key]
        old = before.select(*columns, F.col(quote(version)).alias(_OLD), F.lit(1).alias(_HAD))
        new = after.select(*columns, F.col(quote(version)).alias(_NEW), F.lit(1).alias(_HAS))
        both = old.join(new, names, "full_outer")
        same = F.col(_HAD).eqNullSafe(F.col(_HAS)) & F.col(_OLD).eqNullSafe(F.col(_NEW))
        return both.where(~same).select(*columns)

    def missing_keys(self, left: DataFrame, right: DataFrame, key: tuple[str, ...]) -> tuple[int, list[str]]:
        names, columns = list(key), [F.col(quote(name)) for name in key]
        there = right.select(*(column.alias(f"{_HAS}{index}") for index, column in enumerate(columns)))
        # Null is a value here: a row with one in its key is there if such a row is.
        same = [column.eqNullSafe(F.col(f"{_HAS}{index}")) for index, column in enumerate(columns)]
        missing = left.select(*columns).join(there, reduce(and_, same), "left_anti")
        count = missing.count()
        examples = missing.distinct().sort(*columns).limit(_EXAMPLES).collect() if count else []
        return count, [_key_text(row, names) for row in examples]


def _key_text(row: Row, names: list[str]) -> str:
    return ", ".join(f"{name}={row[name]}" for name in names)


def _literal(value: Stamped) -> SparkColumn:
    """Times as text with their zone: a literal of pyspark's own would be read in the zone of the process."""
    if not isinstance(value, datetime):
        return F.lit(value)
    return F.lit(value.isoformat()).cast("timestamp" if value.tzinfo else "timestamp_ntz")


def _columns(rows: DataFrame) -> tuple[Column, ...]:
    return tuple(Column(name=f.name, type=f.dataType.simpleString(), nullable=f.nullable) for f in rows.schema.fields)


def _types(rows: DataFrame) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in rows.schema.fields}


def _decimal_fits(was: str, wanted: str, *, checked: bool) -> bool:
    """A decimal fits when no digit after the point is cut, and none before it or Spark fails on overflow.

    `sum` widens a decimal by ten digits, so a table's own type is narrower than what every aggregation returns.
    """
    if not wanted.startswith("decimal"):
        return False
    whole, scale = _decimal(wanted)
    digits = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
    if was in digits:
        return whole >= digits[was]
    if not was.startswith("decimal"):
        return False
    was_whole, was_scale = _decimal(was)
    return scale >= was_scale and (checked or whole >= was_whole)


def _decimal(name: str) -> tuple[int, int]:
    kind = DataType.fromDDL(name)
    return kind.precision - kind.scale, kind.scale  # type: ignore[attr-defined]  # a decimal by its name


def _read(observation: Observation) -> Digest | None:
    found = asked(observation)
    return None if found is None else digest_of_row(found)
