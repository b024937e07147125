"""One side of a table against another: chunk by chunk, column by column, row by row.

A run compares its base with its stage; `compare` takes any two versions or parts, and calls them the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from backcast.model.digest import Digest
from backcast.model.document import Document, later
from backcast.model.words import many

DiffStatus = Literal["same", "changed", "added", "removed"]
RowChange = Literal["added", "removed", "changed", "format_only", "tolerated"]
MASK = "***"


class RowCounts(Document):
    """Rows that are not the same on both sides. With a key, `changed` rows have one that both sides know."""

    added: int = 0
    removed: int = 0
    changed: int = 0
    format_only: int = 0
    """Same values, spelled otherwise."""
    tolerated: int = 0
    """Numbers that moved within the declared tolerance, and nothing else."""

    @property
    def differing(self) -> int:
        """Rows that mean something else than before."""
        return self.added + self.removed + self.changed

    def __add__(self, other: RowCounts) -> RowCounts:
        names = RowCounts.model_fields
        return RowCounts(**{name: getattr(self, name) + getattr(other, name) for name in names})


class PartitionDiff(Document):
    chunk: str
    base: Digest
    stage: Digest
    rows: Annotated[RowCounts | None, later(None)] = None
    """None where rows were not compared, because digests say that nothing changed."""

    @property
    def status(self) -> DiffStatus:
        if self.base == self.stage:
            return "same"
        if not self.base.rows:
            return "added"
        return "changed" if self.stage.rows else "removed"


class NamedType(Document):
    name: str
    type: str


class Retyped(Document):
    """A column that has another type on the other side, and how its values were compared."""

    name: str
    before: str
    after: str
    compared_as: str | None
    """None: they were not."""


class Ignored(Document):
    name: str
    reason: str


class SchemaDiff(Document):
    """How the columns of both sides differ. Rows are compared over what they have in common."""

    added: tuple[NamedType, ...] = ()
    removed: tuple[NamedType, ...] = ()
    retyped: tuple[Retyped, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    """Pairs that look renamed: one removed, one added, of one type and with the same values."""
    ignored: tuple[Ignored, ...] = ()

    def sentences(self) -> list[str]:
        """What changed, for people; empty when nothing did."""
        renamed = {name for pair in self.renamed for name in pair}
        told = [f"{before} looks renamed to {after}: same type, same values" for before, after in self.renamed]
        told += [f"column {each.name} ({each.type}) was added" for each in self.added if each.name not in renamed]
        told += [f"column {each.name} ({each.type}) was removed" for each in self.removed if each.name not in renamed]
        for each in self.retyped:
            how = f"compared as {each.compared_as}" if each.compared_as else "its values were not compared"
            told.append(f"column {each.name} was {each.before} and is {each.after}; {how}")
        told += [f"column {each.name} was left out: {each.reason}" for each in self.ignored]
        return told


class Values(Document):
    """One column on one side, over the chunks that differ. Numbers as text: a sum may have 38 digits."""

    nulls: int
    sum: str | None = None
    mean: str | None = None
    min: str | None = None
    max: str | None = None


class ColumnDiff(Document):
    """What became of one column, in rows that both sides have by key."""

    name: str
    type: str
    changed: int | None
    """None without a key: rows that differ cannot be paired."""
    format_only: int = 0
    tolerated: int = 0
    base: Values | None = None
    stage: Values | None = None
    """None where nothing can have moved: no row was added or removed, and no value of the column changed."""

    @property
    def moved(self) -> bool:
        return bool(self.changed or self.format_only or self.tolerated) or self.base != self.stage


class RowDiff(RowCounts):
    """The rows of all chunks that differ."""

    by: Literal["key", "rows"]
    """How rows were matched: by key, or as multisets, where a row counts as often as it occurs."""
    key: tuple[str, ...] = ()
    doubled: int = 0
    """Keys that occur more than once on a side: their rows were compared as multisets."""


class Cell(Document):
    """A value before and after, as text; None is null. Both are masked in columns that are never shown."""

    column: str
    before: str | None = None
    after: str | None = None


class RowSample(Document):
    """One row that differs. A changed row shows the cells that changed, another one shows all it has."""

    change: RowChange
    chunk: str
    key: dict[str, str | None]
    cells: tuple[Cell, ...]
    times: int = 1
    """How many more or fewer of them there are, where rows are compared as multisets."""


class Comparison(Document):
    """Every chunk, in order, also those that are empty on both sides; columns and rows only of those that differ."""

    partitions: tuple[PartitionDiff, ...]
    columns_changed: SchemaDiff = SchemaDiff()
    rows: RowDiff | None = None
    """None when no chunk differs, or rows were not asked for."""
    columns: tuple[ColumnDiff, ...] = ()
    samples: tuple[RowSample, ...] = ()
    notes: tuple[str, ...] = ()
    """What a reader of the numbers should know."""

    def count(self, status: DiffStatus) -> int:
        return sum(1 for each in self.partitions if each.status == status)

    @property
    def total(self) -> tuple[int, int]:
        """Rows of both sides."""
        return sum(each.base.rows for each in self.partitions), sum(each.stage.rows for each in self.partitions)

    def summary(self) -> str:
        """The rows in one sentence."""
        rows = self.rows
        none = "no row differs" if self.columns_changed == SchemaDiff() else "no row differs in what was compared"
        if rows is None:
            differing = len(self.partitions) - self.count("same")
            return f"{many(differing, 'chunk')} differ" if differing else none
        told = {"added": rows.added, "removed": rows.removed, "changed": rows.changed}
        parts = [f"{number:,} {word}" for word, number in told.items() if number]
        parts += [f"{rows.format_only:,} in format only"] if rows.format_only else []
        parts += [f"{rows.tolerated:,} within tolerance"] if rows.tolerated else []
        return ", ".join(parts) or none


class DiffLate(Document):
    """Of a run that replays a stream: records of chunks that differ which the live stream dropped as late."""

    stream: str
    records: int = 0
    unknown: int = 0
    """Records that it may have dropped: its checkpoint no longer tells."""
    taken: int | None = None
    """How many of `records` the replay took in; None: it may have dropped some again, and nobody can tell any more."""
    chunks: dict[str, int] = Field(default_factory=dict)
    """Records, of both kinds, by chunk; one near its edge may be in two. Chunks without any are left out."""
    because: str = ""
    """Why nothing can be told."""

    def sentence(self) -> str:
        """For people."""
        if self.because:
            return f"what stream {self.stream} dropped as late cannot be told: {self.because}"
        if not self.records + self.unknown:
            return f"no record that stream {self.stream} is known to have dropped is in a chunk that differs"
        told = [f"{many(self.records, 'record')} that stream {self.stream} dropped"] if self.records else []
        if self.unknown:
            which = f"{self.unknown:,} that it" if told else f"{many(self.unknown, 'record')} that stream {self.stream}"
            told.append(f"{which} may have dropped, which its checkpoint no longer tells,")
        verb = "is" if self.records + self.unknown == 1 else "are"
        differ = "differs" if len(self.chunks) == 1 else "differ"
        return f"{' and '.join(told)} {verb} in {many(len(self.chunks), 'chunk')} that {differ}{self._taken()}"

    def _taken(self) -> str:
        if self.taken == self.records:
            return ""
        if self.taken is None:
            return "; whether this replay took them nobody can tell any more"
        return f"; this replay took {self.taken:,} of them" if self.taken else "; this replay dropped them too"


class Diff(Comparison):
    """The base of a run against its stage."""

    run_id: str
    base: str | None
    staged: str
    publishable: bool = True
    """Whether the run waits for its publish; False once that has happened, or cannot."""
    late: Annotated[DiffLate | None, later(None)] = None
    """None of a run that replays no stream."""


class ComparedSide(Document):
    """What was compared: a table at a version, and which part of it."""

    dataset: str
    table: str
    version: str | None
    where: tuple[str, ...] = ()


class Compared(Comparison):
    """Two versions of a table, or two parts of one or two tables."""

    left: ComparedSide
    right: ComparedSide


class Tolerance(Document):
    """How far a number may move without counting as changed."""

    amount: float
    relative: bool = False
    """A share of the greater of both values, instead of an amount."""


@dataclass(frozen=True, slots=True)
class DiffRules:
    """How a dataset's rows are compared, as declared."""

    key: tuple[str, ...] = ()
    tolerance: dict[str, Tolerance] = field(default_factory=dict)
    masked: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    """Columns that are not compared."""
