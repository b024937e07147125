"""Rules that need more than one look at a row: keys that occur again, and values that another table must know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backcast.model.masked import hides
from backcast.model.rule import Per, Rule
from backcast.spark.predicates import quote
from backcast.spark.rule_conditions import PART, column, only, part_of, types_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from backcast.model.rule import Number
    from backcast.model.scope import Predicate

_INSIDE, _HITS, _OUT, _KNOWN, _TO = (
    "backcast_inside",
    "backcast_hits",
    "backcast_outside",
    "backcast_known",
    "backcast_to",
)


def doubles(
    rows: DataFrame, outside: DataFrame | None, parts: Mapping[str, Predicate], rule: Rule
) -> dict[str, dict[str, Number]]:
    """See `RuleEngine`."""
    by_part = rule.per is Per.PARTITION
    number = part_of(parts, types_of(rows)) if by_part else F.lit(0)
    keys = _keyed_counts(rows.withColumn(PART, number), outside, rule)
    again = (F.col(_INSIDE) > 1) | ((F.col(_INSIDE) > 0) & (F.col(_OUT) > 0))
    counted = keys.groupBy(PART).agg(
        F.sum(_INSIDE).alias("rows"),
        F.sum(F.when(again, F.col(_INSIDE))).alias("failing"),
        F.count(F.when(again, 1)).alias("keys"),
        F.sum(F.when(F.col(_OUT) > 0, F.col(_INSIDE))).alias("outside"),
    )
    names = list(parts) if by_part else [""]
    measures = ("rows", "failing", "keys", "outside")
    found: dict[str, dict[str, Number]] = {name: dict.fromkeys(measures, 0) for name in names}
    for row in counted.collect():
        if row[PART] is not None:
            found[names[row[PART]]] = {name: row[name] or 0 for name in measures}
    return found


def _keyed_counts(rows: DataFrame, outside: DataFrame | None, rule: Rule) -> DataFrame:
    """Each key with how many rows have it here, and outside. A key with a null is like no other."""
    names = [quote(name) for name in rule.columns]
    complete = only(rows, rule).dropna(subset=list(rule.columns))
    here = complete.select(*names, PART, F.lit(1).alias(_HITS), F.lit(0).alias(_OUT))
    if outside is not None and rule.per is Per.SCOPE:
        others = only(outside, rule).select(*names)
        # Only keys that are here as well are shuffled any further.
        shared = others.join(complete.select(*names).distinct(), list(rule.columns), "left_semi")
        here = here.unionByName(shared.withColumns({PART: F.lit(0), _HITS: F.lit(0), _OUT: F.lit(1)}))
    return here.groupBy(PART, *names).agg(F.sum(_HITS).alias(_INSIDE), F.sum(_OUT).alias(_OUT))


def doubled_rows(rows: DataFrame, outside: DataFrame | None, rule: Rule, part: Column) -> DataFrame:
    """The rows whose key occurs again."""
    numbered = rows.withColumn(PART, part)
    keys = _keyed_counts(numbered, outside, rule)
    again = keys.where((F.col(_INSIDE) > 1) | ((F.col(_INSIDE) > 0) & (F.col(_OUT) > 0)))
    chosen = only(numbered, rule).join(
        again.select(PART, *map(quote, rule.columns)), [PART, *rule.columns], "left_semi"
    )
    return chosen.select(*map(quote, rows.columns))


def strangers(
    rows: DataFrame, referenced: DataFrame, parts: Mapping[str, Predicate], rule: Rule
) -> dict[str, dict[str, Number]]:
    """See `RuleEngine`."""
    by_part = rule.per is Per.PARTITION
    number = part_of(parts, types_of(rows)) if by_part else F.lit(0)
    asked = only(rows.withColumn(PART, number), rule).dropna(subset=list(rule.columns))
    known = _known(referenced, rule).withColumn(_KNOWN, F.lit(1))
    looked = asked.join(known, _same(rule), "left").groupBy(PART)
    counted = looked.agg(F.count(F.lit(1)).alias("rows"), F.count(F.when(F.col(_KNOWN).isNull(), 1)).alias("failing"))
    names = list(parts) if by_part else [""]
    found: dict[str, dict[str, Number]] = {name: {"rows": 0, "failing": 0} for name in names}
    for row in counted.collect():
        if row[PART] is not None:
            found[names[row[PART]]] = {"rows": row["rows"], "failing": row["failing"]}
    return found


def unknown_rows(rows: DataFrame, referenced: DataFrame, rule: Rule) -> DataFrame:
    """The rows whose value the referenced ones do not know."""
    asked = only(rows, rule).dropna(subset=list(rule.columns))
    return asked.join(_known(referenced, rule), _same(rule), "left_anti")


def _known(referenced: DataFrame, rule: Rule) -> DataFrame:
    return referenced.select(*(column(name).alias(f"{_TO}_{at}") for at, name in enumerate(rule.to))).distinct()


def _same(rule: Rule) -> Column:
    equal = [column(name) == F.col(f"{_TO}_{at}") for at, name in enumerate(rule.columns)]
    found = equal[0]
    for each in equal[1:]:
        found = found & each
    return found


def texts(rows: DataFrame, masked: Sequence[str]) -> list[Column]:
    """Every column as short text."""
    return [_text(field.name, field.dataType.simpleString(), masked) for field in rows.schema.fields]


def _text(name: str, kind: str, masked: Sequence[str]) -> Column:
    if hides(masked, name):
        return F.when(column(name).isNotNull(), F.lit("***"))
    value = F.hex(column(name)) if kind == "binary" else column(name).cast("string")
    return F.substring(value, 1, 120)
