"""The port RuleEngine on Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from backcast.errors import BackcastError, ChunkFailed, SparkFailed
from backcast.model.rule import BY_ROW, Metric, Per, Rule, RuleKind
from backcast.spark.gateway import answered, translate
from backcast.spark.inspection import items
from backcast.spark.predicates import quote, to_column
from backcast.spark.rule_conditions import PART, broken, looked_at, only, part_of, types_of, with_previous
from backcast.spark.rule_groups import values
from backcast.spark.rule_joins import doubled_rows, doubles, strangers, texts, unknown_rows
from backcast.spark.rule_scan import scan

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark.sql import DataFrame

    from backcast.model.rule import Number
    from backcast.model.scope import Predicate
    from backcast.model.table import Claim
    from backcast.ports.rules import Sample, Scan

_MOST = 5
_RULE, _CELLS = "backcast_rule", "backcast_cells"


class SparkRules:
    """Measures rules. Holds no state."""

    def scan(
        self,
        rows: DataFrame,
        parts: Mapping[str, Predicate],
        rules: Sequence[Rule],
        metrics: Sequence[Metric],
        *,
        digests: bool = True,
        proven: Collection[Claim] = (),
    ) -> Scan:
        with _judging():
            return scan(rows, parts, rules, metrics, digests=digests, proven=proven)

    def doubles(
        self, rows: DataFrame, outside: DataFrame | None, parts: Mapping[str, Predicate], rule: Rule
    ) -> dict[str, dict[str, Number]]:
        with _judging():
            return doubles(rows, outside, parts, rule)

    def strangers(
        self, rows: DataFrame, referenced: DataFrame, parts: Mapping[str, Predicate], rule: Rule
    ) -> dict[str, dict[str, Number]]:
        with _judging():
            return strangers(rows, referenced, parts, rule)

    def samples(
        self,
        rows: DataFrame,
        others: Mapping[str, DataFrame],
        parts: Mapping[str, Predicate],
        rules: Sequence[Rule],
        masked: Sequence[str],
    ) -> dict[str, tuple[Sample, ...]]:
        frames = []
        for number, rule in enumerate(rules):
            found = _failing(rows, others.get(rule.name), parts, rule)
            cells = F.array(*texts(found, masked))
            frames.append(found.limit(_MOST).select(F.lit(number).alias(_RULE), cells.alias(_CELLS)))
        if not frames:
            return {}
        samples: dict[str, tuple[Sample, ...]] = {rule.name: () for rule in rules}
        with _judging():
            shown = reduce(lambda one, other: one.unionAll(other), frames).collect()
        for row in shown:
            samples[rules[row[_RULE]].name] += (dict(zip(rows.columns, row[_CELLS], strict=True)),)
        return samples

    def told(
        self, failing: DataFrame, tables: Sequence[DataFrame], masked: Sequence[str]
    ) -> tuple[int, tuple[Sample, ...]]:
        names, hidden = failing.columns, list(masked)
        if masked:
            own = frozenset(pair for table in tables for pair in _attributes(table))
            hidden += [name for name, each in _attributes(failing) if (name, each) not in own]
        cells = F.array(*texts(failing, hidden)).alias(_CELLS)
        with _judging():
            count = failing.count()
            shown = failing.limit(_MOST).select(cells).collect() if count else []
        return count, tuple(dict(zip(names, row[_CELLS], strict=True)) for row in shown)

    def counted(self, rows: DataFrame, parts: Mapping[str, Predicate], rule: Rule) -> dict[str, int]:
        asked, names = only(rows, rule), list(parts)
        with _judging():
            if len(names) == 1:
                return {names[0]: asked.count()}
            counts = asked.groupBy(part_of(parts, types_of(rows)).alias(PART)).count().collect()
        found = {row[PART]: row["count"] for row in counts}
        return {name: found.get(number, 0) for number, name in enumerate(names)}

    def beside(self, rows: DataFrame, scope: Predicate) -> DataFrame:
        return rows.where(~F.coalesce(to_column(scope, types_of(rows)), F.lit(False)))

    def within_parts(
        self, rows: DataFrame, chosen: Mapping[str, Predicate], parts: Mapping[str, Predicate]
    ) -> DataFrame:
        if len(chosen) == len(parts):
            return rows
        numbers = [number for number, name in enumerate(parts) if name in chosen]
        return rows.where(part_of(parts, types_of(rows)).isin(numbers))

    def problems(self, rows: DataFrame, rules: Sequence[Rule], metrics: Sequence[Metric]) -> list[tuple[str, str]]:
        found = []
        numbered = rows.withColumn(PART, F.lit(0))
        for rule in rules:
            try:
                _analyse(numbered, rule)
            except (PySparkException, BackcastError) as error:
                found.append((rule.name, str(error).strip().splitlines()[0]))
        for metric in metrics:
            try:
                rows.groupBy(*values(metric.by, rows.columns)).agg(F.expr(metric.sql).cast("double"))
            except PySparkException as error:
                found.append((metric.name, str(error).strip().splitlines()[0]))
        return found


@contextmanager
def _judging() -> Iterator[None]:
    """What data makes a job fail is told as ChunkFailed; storage, catalogs and a lost JVM stay what they are."""
    try:
        yield
    except Exception as error:
        ours = translate(error, "judging the rules")
        if ours is None:
            raise
        if type(ours) is SparkFailed and answered(error):
            raise ChunkFailed(ours.message, hint="correct the rule or the data that it cannot read") from error
        raise ours from error


def _attributes(rows: DataFrame) -> list[tuple[str, int]]:
    """Each column with the number by which Spark knows it wherever it is carried along as it is."""
    output = rows._jdf.queryExecution().analyzed().output()  # the plan has no public accessor in Python
    return [(each.name(), each.exprId().id()) for each in items(output)]


def _failing(rows: DataFrame, other: DataFrame | None, parts: Mapping[str, Predicate], rule: Rule) -> DataFrame:
    """The rows that break the rule, with the table's columns alone."""
    by_part = rule.per is Per.PARTITION
    part = part_of(parts, types_of(rows)) if by_part else F.lit(0)
    if rule.kind is RuleKind.UNIQUE:
        return doubled_rows(rows, other, rule, part)
    if rule.kind is RuleKind.REFERENCES and other is not None:
        return unknown_rows(rows, other, rule)
    numbered = with_previous(rows.withColumn(PART, part), [rule])
    return numbered.where(broken(rule, types_of(rows))).select(*map(quote, rows.columns))


def _analyse(rows: DataFrame, rule: Rule) -> None:
    """Raises what Spark says about the rule's texts. A pattern is tried in Java itself: Spark would do so per row."""
    where = looked_at(rule)
    if where is not None:
        rows.where(where)
    if rule.kind is RuleKind.PATTERN:
        session = rows.sparkSession
        session.sql("SELECT 'a' RLIKE :pattern", args={"pattern": rule.matches}).collect()
    if rule.kind in BY_ROW:
        with_previous(rows, [rule]).where(broken(rule, types_of(rows)))
