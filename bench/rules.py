"""Promise: ten rules, with counts by partition, cost little more than a write of the columns that they need."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from backcast.model.column import TimeColumn, TimeKind
from backcast.model.pipeline import TableFormat
from backcast.model.rule import Per, Rule, RuleKind, RuleResult
from backcast.model.scope import EVERYTHING, Predicate, TimeClause
from backcast.ports import Source
from backcast.spark.delta.reader import DeltaReader
from backcast.spark.iceberg.reader import IcebergReader
from backcast.spark.rules import SparkRules
from backcast.validate.rules import Facts, judge, numbers_of
from bench.lake import Lake
from bench.measure import Contender, alternate
from bench.promise import Result, Sizes, ratio_result
from bench.tables import Shape

LIMIT = 1.3


def _rule(kind: RuleKind, name: str, *columns: str, **fields: Any) -> Rule:
    return Rule(kind=kind, name=name, columns=columns, **fields)


RULES = (
    _rule(RuleKind.NOT_NULL, "complete", "id", "customer", "amount"),
    _rule(RuleKind.NOT_NULL, "dated", "day", "at", per=Per.PARTITION),
    _rule(RuleKind.RANGE, "amount", "amount", minimum="0", maximum="1000"),
    _rule(RuleKind.RANGE, "quantity", "quantity", minimum="1", maximum="9", per=Per.PARTITION),
    _rule(RuleKind.RANGE, "time", "at", minimum="2025-12-31T00:00:00"),
    _rule(RuleKind.ACCEPTED, "quantities", "quantity", values=tuple(str(number) for number in range(1, 10))),
    _rule(RuleKind.PATTERN, "customer", "customer", matches="^customer-"),
    _rule(RuleKind.LENGTH, "length", "customer", minimum="10", maximum="14"),
    _rule(RuleKind.FRESH, "fresh", "at", within_seconds=366 * 86_400, per=Per.PARTITION),
    _rule(RuleKind.RANGE, "revenue", "revenue", minimum="0", where="quantity > 1"),
)


def measure(lake: Lake, table_format: TableFormat, sizes: Sizes) -> list[Result]:
    """The rules over a table, and a write of the same columns to nowhere, in turn.

    As a run judges them: what metadata prove is not looked at. Beside it is shown what they cost where metadata prove
    nothing, and with checksums of all columns in the same job.
    """
    restatement = lake.restatement(table_format, Shape(sizes.rows, sizes.days))
    facts = restatement.tables.name("facts")
    rows = lake.spark.table(facts)
    needed = [name for name in rows.columns if name in {"day", *(name for rule in RULES for name in _read_by(rule))}]
    days = restatement.shape.dates()
    column = TimeColumn(column="day", kind=TimeKind.DATE, zone="UTC", format=None)
    parts = {
        str(day): Predicate(clauses=(TimeClause(time=column, ranges=((str(day), str(day + timedelta(days=1))),)),))
        for day in days
    }
    reader: Source = (IcebergReader if table_format is TableFormat.ICEBERG else DeltaReader)(lake.spark, facts)
    version = reader.facts().version
    claims = [claim for rule in RULES for claim in rule.claims]
    ends = {name: datetime(2027, 1, 1, tzinfo=UTC) for name in ("", *parts)}

    def written(*columns: str) -> None:
        rows.select(*columns).write.format("noop").mode("overwrite").save()

    def judged(*, digests: bool = False, metadata: bool = True) -> list[RuleResult]:
        proven = reader.proven(version, EVERYTHING, claims) if metadata else frozenset()
        scan = SparkRules().scan(rows, parts, RULES, (), digests=digests, proven=proven)
        assert sum(part.digest.rows for part in scan.parts.values()) == sizes.rows
        results = [judge(rule, Facts(numbers_of(rule, scan), ends=ends)) for rule in RULES]
        assert all(result.passed for result in results), results
        return results

    samples = alternate(
        {
            "needed": Contender(work=partial(written, *needed)),
            "all": Contender(work=partial(written, *rows.columns)),
            "rules": Contender(work=judged),
            "unproven": Contender(work=partial(judged, metadata=False)),
            "digests": Contender(work=partial(judged, digests=True, metadata=False)),
        },
        rounds=sizes.pairs,
        warm_up=sizes.warm_up,
    )
    text = f"{len(RULES)} rules by {len(parts)} partitions, {sizes.rows:,} rows, against a write of"
    columns = f"their {len(needed)} columns to nowhere"
    return [
        ratio_result("rules", f"{text} {columns}", LIMIT, samples["rules"], samples["needed"]),
        ratio_result("rules", "the same where metadata prove nothing", None, samples["unproven"], samples["needed"]),
        ratio_result(
            "rules",
            f"that with checksums, in one job, against a write of all {len(rows.columns)} columns",
            None,
            samples["digests"],
            samples["all"],
        ),
    ]


def _read_by(rule: Rule) -> tuple[str, ...]:
    """A `where` names its column first."""
    return (*rule.columns, *([rule.where.split()[0]] if rule.where else []))
