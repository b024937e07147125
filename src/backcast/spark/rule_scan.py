"""One job over the rows: counts, digests, and whatever rules and metrics can be told row by row.

Rows are grouped by the part that they belong to and by which rules they break, as bits of a number. Nearly all rows
break none, so that there are few groups; and a rule costs a condition, not a counter that is written for every row.
What groups cannot be added up to (a metric, the values of a column for a drift rule) comes from further copies of each
row, which are grouped on their own in the same job.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from backcast.model.digest import EMPTY
from backcast.model.rule import BY_ROW, Metric, Per, Rule, RuleKind
from backcast.ports.rules import MOST_GROUPS, Bucket, Group, Part, Scan
from backcast.spark.digest import ROWS, digest_columns, digest_of_row
from backcast.spark.predicates import quote
from backcast.spark.rule_conditions import (
    PART,
    broken_sql,
    column,
    looked_at,
    part_of,
    types_of,
    where_sql,
    with_previous,
)
from backcast.spark.rule_groups import at_most, group_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

    from backcast.model.scope import Predicate
    from backcast.model.table import Claim
    from backcast.ports.rules import Measure

_COPY, _COPIES, _BUCKET, _LABEL = "backcast_copy", "backcast_copies", "backcast_bucket", "backcast_label"
_MASK, _BITS = "backcast_mask", 60
_OWN, _BY_PART, _WHOLE, _FIRST_DRIFT = 0, 1, 2, 3
_CATEGORIES = 1024
_LONGEST_LABEL = 60
NUMERIC = ("tinyint", "smallint", "int", "bigint", "float", "double", "decimal")
TEMPORAL = ("date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True, slots=True)
class _Bit:
    """Something that is true or not of a row, and the rule and measure that count it."""

    rule: str
    measure: str
    condition: str
    """As SQL; empty when it is proven that it is true of no row."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one job is asked."""

    rules: tuple[Rule, ...]
    metrics: tuple[Metric, ...]
    types: dict[str, str]
    bits: tuple[_Bit, ...]
    """What has to be looked at."""
    settled: tuple[_Bit, ...]

    def drifts(self) -> list[tuple[int, Rule]]:
        found = (rule for rule in self.rules if rule.kind is RuleKind.DRIFT)
        return list(enumerate(found, start=_FIRST_DRIFT))

    @property
    def first_group(self) -> int:
        return _FIRST_DRIFT + len(self.drifts())

    def grouped(self) -> dict[tuple[Per, tuple[str, ...]], int]:
        """Each way in which metrics group rows, with the number of the copy for it."""
        ways = dict.fromkeys((metric.per, metric.by) for metric in self.metrics if metric.by)
        return {way: number for number, way in enumerate(ways, start=self.first_group)}

    def copy_of(self, metric: Metric) -> int:
        """Which copy of each row the metric is about."""
        if metric.by:
            return self.grouped()[metric.per, metric.by]
        return _BY_PART if metric.per is Per.PARTITION else _WHOLE

    def masks(self) -> list[str]:
        """The bits of a row as SQL, sixty to a number. Copies of a row have none: they are counted otherwise."""
        numbered = [
            f"CASE WHEN {bit.condition} THEN {1 << at % _BITS}L ELSE 0L END" for at, bit in enumerate(self.bits)
        ]
        return [" | ".join(numbered[start : start + _BITS]) for start in range(0, len(numbered), _BITS)]

    def aggregates(self) -> list[Column]:
        return [
            each.alias(f"r{number}_{name}")
            for number, rule in enumerate(self.rules)
            for name, each in _measures(rule, self.types).items()
        ]

    def numbers(self, row: Row) -> dict[str, dict[str, Measure]]:
        """What one group of rows tells about each rule."""
        rows = row[ROWS]
        masks = [row[f"{_MASK}_{at}"] or 0 for at in range(-(-len(self.bits) // _BITS))]
        found: dict[str, dict[str, Measure]] = {rule.name: {"rows": rows} for rule in self.rules}
        for bit in self.settled:
            found[bit.rule][bit.measure] = 0
        for at, bit in enumerate(self.bits):
            found[bit.rule][bit.measure] = rows if masks[at // _BITS] >> at % _BITS & 1 else 0
        for number, rule in enumerate(self.rules):
            own = found[rule.name]
            own |= {name: _exact(row[f"r{number}_{name}"]) for name in _MEASURES.get(rule.kind, ())}
            if own.get("values") and own["sum"] is None:
                # Greater than its type can hold: what it is added to cannot be told either.
                own["sum"] = math.nan
            if rule.kind is RuleKind.NOT_NULL and "failing" not in own:
                own["failing"] = rows if any(own[f"nulls of {name}"] for name in rule.columns) else 0
        return found


def scan(
    rows: DataFrame,
    parts: Mapping[str, Predicate],
    rules: Sequence[Rule],
    metrics: Sequence[Metric],
    *,
    digests: bool = True,
    proven: Collection[Claim] = (),
) -> Scan:
    """See `RuleEngine`."""
    types = types_of(rows)
    bits = tuple(_bits(rules, types, proven))
    to_look_at, settled = tuple(bit for bit in bits if bit.condition), tuple(bit for bit in bits if not bit.condition)
    asked = _Asked(tuple(rules), tuple(metrics), types, to_look_at, settled)
    numbered = with_previous(rows.withColumn(PART, part_of(parts, types)), rules)
    copies = _copies(asked)
    keys = [F.col(PART)]
    masks = asked.masks()
    if len(copies) > 1:
        numbered = numbered.withColumn(_COPIES, F.explode(F.array(*copies)))
        kept = [F.col(quote(name)) for name in numbered.columns if name not in (PART, _COPIES)]
        numbered = numbered.select(*kept, f"{_COPIES}.*")
        keys = [F.col(_COPY), F.col(PART), F.col(_BUCKET)]
        masks = [f"CASE WHEN {_COPY} = {_OWN} THEN {mask} END" for mask in masks]
    counted = digest_columns(rows.schema) if digests else [F.count(F.lit(1)).alias(ROWS)]
    more = [F.min(_LABEL).alias(_LABEL)] if len(copies) > 1 else []
    more += [_metric(each, asked.copy_of(each)).alias(f"m{number}") for number, each in enumerate(metrics)]
    grouped = numbered.groupBy(*keys, *(F.expr(mask).alias(f"{_MASK}_{at}") for at, mask in enumerate(masks)))
    told = grouped.agg(*counted, *asked.aggregates(), *more)
    if asked.grouped():
        told = at_most(told, _COPY, _BUCKET, asked.first_group)
    return _read(told.collect(), list(parts), asked, digests=digests)


def _metric(metric: Metric, own: int) -> Column:
    """Only of the rows that it is about: a share can be without a denominator in any other group of them."""
    return F.when(F.col(_COPY) == own, F.expr(metric.sql).cast("double"))


def _read(found: list[Row], names: list[str], asked: _Asked, *, digests: bool) -> Scan:
    copied = bool(found) and _COPY in found[0]
    drifts = {number: rule.name for number, rule in asked.drifts()}
    digest = dict.fromkeys(names, EMPTY)
    numbers: dict[str, dict[str, dict[str, Measure]]] = {
        name: {rule.name: {"rows": 0} for rule in asked.rules} for name in ("", *names)
    }
    buckets: dict[str, dict[str, dict[int | None, Bucket]]] = {name: {} for name in ("", *names)}
    metrics: dict[str, dict[str, float | None]] = {name: {} for name in ("", *names)}
    groups: dict[str, dict[str, dict[int, Group]]] = {name: {} for name in ("", *names)}
    for row in found:
        copy = row[_COPY] if copied else _OWN
        if copy is None or row[PART] is None:
            continue
        name = names[row[PART]] if row[PART] >= 0 else ""
        if copy == _OWN:
            digest[name] += digest_of_row(row) if digests else EMPTY.model_copy(update={"rows": row[ROWS]})
            for rule, own in asked.numbers(row).items():
                numbers[name][rule] = _joined(numbers[name][rule], own)
        elif copy in (_BY_PART, _WHOLE):
            metrics[name] = {each.name: row[f"m{number}"] for number, each in enumerate(asked.metrics) if not each.by}
        elif copy >= asked.first_group:
            for number, each in enumerate(asked.metrics):
                if asked.copy_of(each) == copy:
                    own_groups = groups[name].setdefault(each.name, {})
                    own_groups[row[_BUCKET]] = Group(row[_LABEL], row[f"m{number}"])
        else:
            buckets[name].setdefault(drifts[copy], {})[row[_BUCKET]] = Bucket(row[ROWS], row[_LABEL] or "")
    ordered = {rule.name for _, rule in asked.drifts() if _is_ordered(asked.types[rule.column])}
    made = {
        name: Part(digest.get(name, EMPTY), each, buckets[name], metrics[name], groups[name])
        for name, each in numbers.items()
    }
    crowded = {
        each.name for each in asked.metrics if sum(len(own.get(each.name, ())) for own in groups.values()) > MOST_GROUPS
    }
    return Scan({name: made[name] for name in names}, made[""], frozenset(ordered), frozenset(crowded))


def _joined(one: dict[str, Measure], other: dict[str, Measure]) -> dict[str, Measure]:
    """The numbers of two groups of rows as those of both."""
    found = dict(one)
    for name, value in other.items():
        before = found.get(name)
        if before is None or value is None:
            found[name] = value if before is None else before
        else:
            found[name] = max(before, value) if name == "newest" else before + value
    return found


def _copies(asked: _Asked) -> list[Column]:
    """Each row as itself; once more by part, and for the scope, if metrics ask for it; and once for each drift rule and
    each way in which metrics group rows.
    """

    def copy(number: int, part: Column, bucket: Column | None = None, label: Column | None = None) -> Column:
        return F.struct(
            F.lit(number).alias(_COPY),
            part.alias(PART),
            (F.lit(None) if bucket is None else bucket).cast("bigint").alias(_BUCKET),
            (F.lit(None) if label is None else label).cast("string").alias(_LABEL),
        )

    scope, wanted = F.lit(-1), {metric.per for metric in asked.metrics if not metric.by}
    found = [copy(_OWN, F.col(PART))]
    found += [copy(_BY_PART, F.col(PART))] if Per.PARTITION in wanted else []
    found += [copy(_WHOLE, scope)] if Per.SCOPE in wanted else []
    for number, rule in asked.drifts():
        bucket, label = _bucket(column(rule.column), asked.types[rule.column])
        own = copy(number, F.col(PART) if rule.per is Per.PARTITION else scope, bucket, label)
        where = looked_at(rule)
        found.append(own if where is None else F.when(where, own))
    for (per, by), number in asked.grouped().items():
        found.append(copy(number, F.col(PART) if per is Per.PARTITION else scope, *group_of(by, asked.types)))
    return found


def _bits(rules: Sequence[Rule], types: Mapping[str, str], proven: Collection[Claim]) -> Iterator[_Bit]:
    for number, rule in enumerate(rules):
        where = where_sql(rule)
        settled = {claim.column for claim in rule.claims if claim in proven}
        if where is not None:
            yield _Bit(rule.name, "rows", where)
        if rule.kind is RuleKind.NOT_NULL and len(rule.columns) > 1:
            for name in rule.columns:
                missing = f"{quote(name)} IS NULL"
                condition = missing if where is None else f"{where} AND {missing}"
                yield _Bit(rule.name, f"nulls of {name}", "" if name in settled else condition)
        elif rule.kind in BY_ROW:
            yield _Bit(rule.name, "failing", "" if rule.column in settled else broken_sql(rule, types, number))


def _bucket(value: Column, kind: str) -> tuple[Column, Column]:
    """The number of the part of all values that one lies in, whatever values there are; and what to call it.

    Numbers: 64 parts between each power of two and the next. Times: days. Anything else: by hash, 1,024 parts.
    """
    if kind.startswith(NUMERIC):
        number = value.cast("double")
        power = F.floor(F.least(F.log2(F.abs(number)), F.lit(1100.0)) * 64) + 70_000
        signed = F.when(number < 0, -power).otherwise(power)
        known = F.when(F.isnan(number), F.lit(10**9)).when(number == 0, F.lit(0)).otherwise(signed)
        return F.when(value.isNotNull(), known), F.lit(None)
    if kind in TEMPORAL:
        day = value.cast("date")
        return F.unix_date(day), day.cast("string")
    hashed = F.pmod(F.xxhash64(value), F.lit(_CATEGORIES))
    return F.when(value.isNotNull(), hashed), F.substring(value.cast("string"), 1, _LONGEST_LABEL)


def _is_ordered(kind: str) -> bool:
    return kind.startswith(NUMERIC) or kind in TEMPORAL


_MEASURES = {RuleKind.FRESH: ("newest",), RuleKind.SUM: ("sum", "values"), RuleKind.MEAN: ("sum", "values")}
"""What bits cannot tell."""


def _measures(rule: Rule, types: Mapping[str, str]) -> dict[str, Column]:
    """As `_MEASURES` names them."""
    where, found = looked_at(rule), {}
    if rule.kind is RuleKind.FRESH:
        found["newest"] = F.max(_within(where, F.unix_micros(column(rule.column).cast("timestamp"))))
    if rule.kind in (RuleKind.SUM, RuleKind.MEAN):
        value = column(rule.column)
        exact = value.cast("decimal(20,0)") if types[rule.column] == "bigint" else value
        found["sum"] = F.try_sum(_within(where, exact))
        found["values"] = F.count(_within(where, value))
    return found


def _within(where: Column | None, value: Column) -> Column:
    return value if where is None else F.when(where, value)


def _exact(value: Any) -> Measure:
    """Sums of whole numbers and decimals stay as they are, however long."""
    return Fraction(value) if isinstance(value, Decimal) else value
