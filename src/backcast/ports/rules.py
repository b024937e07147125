"""What validation asks about rules: of Spark (`spark/rules.py`) and of the user's code (`project/rule_code.py`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from backcast.model.digest import EMPTY, Digest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.pipeline import Job
    from backcast.model.rule import Metric, Number, Rule
    from backcast.model.scope import Predicate
    from backcast.model.table import Claim

Measure = int | float | Fraction | None
"""A number exactly as it was measured; None where there was nothing to measure, NaN where it cannot be told."""
Sample = dict[str, "str | None"]
"""Columns of one row with their values as text."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Rows whose value lies in one part of a column's values."""

    rows: int
    label: str


MOST_GROUPS = 10_000
"""Of one metric, in all parts together."""


@dataclass(frozen=True, slots=True)
class Group:
    """A metric of the rows that have some values in common."""

    label: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Part:
    """What was measured on one part of the rows."""

    digest: Digest = EMPTY
    numbers: Mapping[str, Mapping[str, Measure]] = field(default_factory=dict)
    """By rule: `rows` looked at, `failing` ones, `sum`, `newest` ..."""
    buckets: Mapping[str, Mapping[int | None, Bucket]] = field(default_factory=dict)
    """Of drift rules: by number of the bucket, None for nulls. Numbers are in the order of the values if `ordered`."""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    """By name, as they were measured; None where there was nothing to measure."""
    groups: Mapping[str, Mapping[int, Group]] = field(default_factory=dict)
    """Of metrics that ask for groups: by number of the group, which is the same on stage and base."""


@dataclass(frozen=True, slots=True)
class Scan:
    """What one job measured: by part, and where parts cannot be added up, of all rows."""

    parts: Mapping[str, Part]
    whole: Part = field(default_factory=Part)
    """Metrics and buckets of the scope."""
    ordered: frozenset[str] = frozenset()
    """Drift rules over numbers and times."""
    crowded: frozenset[str] = frozenset()
    """Metrics with more groups than `MOST_GROUPS`; some of these are missing."""


@dataclass(frozen=True, slots=True)
class RuleFrames:
    """What custom rules look at. Reading them runs no job before somebody asks for rows."""

    stage: DataFrame
    base: DataFrame
    inputs: Mapping[str, DataFrame]
    job: Job


@dataclass(frozen=True, slots=True)
class Complaint:
    """What an adapter says when it has no rows to show."""

    failing: int | None
    text: str
    passed: bool = False


class RuleEngine(Protocol):
    """Measures rules on rows."""

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
        """Everything that can be measured row by row, in one job; with digests, or with counts alone.

        What is proven of all rows is not looked at again.
        """

    def doubles(
        self, rows: DataFrame, outside: DataFrame | None, parts: Mapping[str, Predicate], rule: Rule
    ) -> dict[str, dict[str, Number]]:
        """Of a unique rule: `rows` looked at, `failing` ones whose key occurs again among them, and `outside` ones
        whose key occurs in the rows outside. By part; all in one job.
        """

    def strangers(
        self, rows: DataFrame, referenced: DataFrame, parts: Mapping[str, Predicate], rule: Rule
    ) -> dict[str, dict[str, Number]]:
        """Of a references rule: `rows` looked at and `failing` ones that the referenced rows do not know. By part."""

    def samples(
        self,
        rows: DataFrame,
        others: Mapping[str, DataFrame],
        parts: Mapping[str, Predicate],
        rules: Sequence[Rule],
        masked: Sequence[str],
    ) -> dict[str, tuple[Sample, ...]]:
        """A few rows that break each of the rules, in one job. `others` has the rows that a rule compares with."""

    def told(
        self, failing: DataFrame, tables: Sequence[DataFrame], masked: Sequence[str]
    ) -> tuple[int, tuple[Sample, ...]]:
        """How many rows a custom rule found, and a few of them.

        When columns are masked, only what is a column of these tables, under its own name, is known to hold no value of
        theirs: everything else is masked, too.
        """

    def counted(self, rows: DataFrame, parts: Mapping[str, Predicate], rule: Rule) -> dict[str, int]:
        """How many rows the rule is about, by part; in one job. All rows are of one part when there is only one."""

    def beside(self, rows: DataFrame, scope: Predicate) -> DataFrame:
        """The rows that the scope does not hold."""

    def within_parts(
        self, rows: DataFrame, chosen: Mapping[str, Predicate], parts: Mapping[str, Predicate]
    ) -> DataFrame:
        """The rows of some of the parts."""

    def problems(self, rows: DataFrame, rules: Sequence[Rule], metrics: Sequence[Metric]) -> list[tuple[str, str]]:
        """Rules and metrics that these rows cannot answer, by name, and why. Runs no job."""


class RuleCode(Protocol):
    """Rules that are the user's own code, loaded."""

    def apply(self, rule: Rule, frames: RuleFrames) -> DataFrame | Complaint:
        """The rows that break the rule. Raises ChunkFailed when the code raises or returns something else."""
