"""Rules and gates of a dataset or a pipeline, and what became of each of them: declarations and typed results."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

from backcast.model.document import Document, later
from backcast.model.layer import Consequence, Layer
from backcast.model.table import Claim

Number = int | float | None
"""None: there was nothing to measure."""


class RuleKind(StrEnum):
    NOT_NULL = "not_null"
    UNIQUE = "unique"
    RANGE = "range"
    ACCEPTED = "accepted"
    PATTERN = "pattern"
    LENGTH = "length"
    REFERENCES = "references"
    ROWS = "rows"
    FRESH = "fresh"
    MONOTONIC = "monotonic"
    SUM = "sum"
    MEAN = "mean"
    DRIFT = "drift"
    SQL = "sql"
    PYTHON = "python"
    PANDERA = "pandera"
    GREAT_EXPECTATIONS = "great_expectations"

    @property
    def layer(self) -> Layer:
        if self in (RuleKind.ROWS, RuleKind.SUM, RuleKind.MEAN):
            return Layer.RECONCILIATION
        return Layer.REASONABLENESS if self is RuleKind.DRIFT else Layer.QUALITY


BY_ROW = frozenset(
    {
        RuleKind.NOT_NULL,
        RuleKind.RANGE,
        RuleKind.ACCEPTED,
        RuleKind.PATTERN,
        RuleKind.LENGTH,
        RuleKind.MONOTONIC,
    }
)
"""Each row holds or breaks them, so that rows are counted while the stage is scanned."""
AGAINST_BASE = frozenset({RuleKind.SUM, RuleKind.MEAN, RuleKind.DRIFT})
CUSTOM = frozenset({RuleKind.SQL, RuleKind.PYTHON, RuleKind.PANDERA, RuleKind.GREAT_EXPECTATIONS})
"""They bring code or queries of their own, and jobs of their own."""
OWN_JOB = CUSTOM | {RuleKind.UNIQUE, RuleKind.REFERENCES}
_BASE = re.compile(r"\bbase\b", re.IGNORECASE)


class Per(StrEnum):
    """What has to hold the rule: the scope as a whole, or each of its chunks."""

    SCOPE = "scope"
    PARTITION = "partition"


class Rule(Document):
    """One rule. Which fields it has depends on its kind; values are text, compared in the column's own type."""

    kind: RuleKind
    name: str
    """Unique among the rules of a run."""
    severity: Consequence = Consequence.BLOCK
    per: Per = Per.SCOPE
    where: str | None = None
    """A SQL condition: only rows that match it are looked at."""
    columns: tuple[str, ...] = ()
    minimum: str | None = None
    maximum: str | None = None
    values: tuple[str, ...] = ()
    matches: str | None = None
    """A regular expression as Java knows them, found anywhere in the text."""
    input: str | None = None
    dataset: str | None = None
    to: tuple[str, ...] = ()
    """Columns of that dataset."""
    tolerance: float = 0.0
    """A share: of rows that may break the rule, or of the base's number."""
    within_seconds: int | None = None
    by: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    query: str | None = None
    reference: str | None = None
    """`module:name` or a file of the project."""

    @property
    def column(self) -> str:
        return self.columns[0]

    @property
    def sees_base(self) -> bool:
        """Whether it compares with the base, or may: Python is given it, and a query may name it."""
        named = self.kind is RuleKind.SQL and _BASE.search(self.query or "") is not None
        return named or self.kind is RuleKind.PYTHON or self.kind in AGAINST_BASE

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Of which each, once it is proven of every row, settles a part of the rule: one for each column."""
        match self.kind:
            case RuleKind.NOT_NULL:
                return tuple(Claim(name, not_null=True) for name in self.columns)
            case RuleKind.RANGE:
                return (Claim(self.column, least=self.minimum, greatest=self.maximum),)
            case _:
                return ()


class Metric(Document):
    """A number of the scope, as a SQL aggregate, and the move from base to stage at which a person must look."""

    name: str
    sql: str
    falls: float | None = None
    """From this share of the base's number on."""
    rises: float | None = None
    per: Per = Per.SCOPE
    by: Annotated[tuple[str, ...], later(())] = ()
    """Columns, or SQL over them: rows that have these in common are a group, and each group is judged."""


class Gates(Document):
    """How much may change before a person must look: shares of the scope's rows and chunks, and moves of metrics."""

    changed_rows: float | None = None
    changed_partitions: float | None = None
    metrics: tuple[Metric, ...] = ()

    def joined(self, other: Gates) -> Gates:
        """Both apply: of two shares the smaller one, and every metric; the other's where names are equal."""
        shares = {}
        for name in ("changed_rows", "changed_partitions"):
            known = [each for each in (getattr(self, name), getattr(other, name)) if each is not None]
            shares[name] = min(known, default=None)
        metrics = {each.name: each for each in (*self.metrics, *other.metrics)}
        return Gates(metrics=tuple(metrics.values()), **shares)


NO_GATES = Gates()


class PartResult(Document):
    """The numbers of one chunk, or of one group of rows, that does not hold a rule."""

    chunk: str
    """Empty for a group of the scope."""
    numbers: dict[str, Number]
    group: Annotated[str, later("")] = ""
    """The values that its rows have in common."""


class RuleResult(Document):
    """What became of one rule or gate: the numbers, and a few of the rows that break it. Never holds masked values."""

    name: str
    kind: str
    """A rule's kind, or `gate`."""
    layer: Layer
    consequence: Consequence
    passed: bool
    detail: str
    numbers: dict[str, Number]
    failing_rows: int | None = None
    """None where rows neither hold nor break it."""
    failing_partitions: int = 0
    """Chunks, or groups of rows where those are judged."""
    partitions: tuple[PartResult, ...] = ()
    """The first of those that fail."""
    samples: Annotated[tuple[dict[str, str | None], ...], later(())] = ()
    """Columns with their values as text; masked ones as `***`."""
