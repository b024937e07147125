"""What the contract suite of targets needs of a table format and the port does not offer: other people.

A `Lab` makes tables; a `LabTable` is one of them in the hands of its owner and its live writers, who use plain SQL and
know nothing of Backcast. A new adapter brings a lab of its own and runs the suite.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.ports import Target

FIRST = date(2026, 1, 1)
"""Day 1. Tests count days from here."""

DDL = "id BIGINT, day DATE, v DOUBLE"

Row = tuple[int, int, float]
"""(id, number of the day, v)."""

Rows = Counter[tuple[object, ...]]
"""Rows as a multiset: a doubled row is seen."""


def date_of(day: int) -> date:
    return FIRST + timedelta(days=day - 1)


def day_literal(day: int) -> str:
    return f"DATE'{date_of(day).isoformat()}'"


class Ability(StrEnum):
    """Where formats may differ. A lab declares what its format lacks and why; the suite then asserts the other way."""

    EMPTY_HAS_NO_VERSION = "an empty table has no version"
    SPEC_CHANGES = "the partitioning of a table can change"
    PINS_SURVIVE = "files that a publish replaced survive the owner's expiry until they are forgotten"
    BOUNDS_PROTECT = "a commit elsewhere in an unpartitioned table is no conflict"
    PROPERTIES_PASS = "a property set between decision and commit is no conflict"  # noqa: S105 - not a password
    MOVES_WHILE_LANDING = "a commit elsewhere at the very moment of landing is no conflict"
    UNDO_IGNORES_ARRIVALS = "rows that arrive in scope between the decision to undo and its commit are no conflict"
    SWAPS_FILES = "publish and undo swap exact files and write no data"
    STRAYS_REACH_THE_STAGE = "rows outside the chunk's predicate are written and found by the net change"


@dataclass(frozen=True, slots=True)
class Capability:
    """Whether the format has the ability, and if not, why."""

    given: bool
    reason: str = ""


class Writer(StrEnum):
    """What other people do to a table."""

    APPEND = "append"
    DELETE = "delete"
    UPDATE = "update"
    MERGE = "merge"
    OVERWRITE = "overwrite"
    COMPACT = "compact"


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns of a table as its writers see them: one day, one key, one value."""

    key: str
    value: str
    present: str
    """A key that every day has, as SQL."""
    absent: str
    """A key that no day has, as SQL."""
    select: Callable[[str, int, str], str]
    """A SELECT of one row from key, day and value, the latter as SQL."""


def _plain(key: str, day: int, value: str) -> str:
    return f"SELECT CAST({key} AS BIGINT) AS id, {day_literal(day)} AS day, CAST({value} AS DOUBLE) AS v"


def plain_shape(present: int, absent: int) -> Shape:
    return Shape(key="id", value="v", present=str(present), absent=str(absent), select=_plain)


class LabTable(ABC):
    """A live table as its owner and its writers use it."""

    expiries: ClassVar[tuple[str, ...]]
    """The ways in which its owner can expire old versions and their files."""

    lost_answers: ClassVar[tuple[str, ...]]
    """The places at which the answer to a commit can be lost."""

    writes_data: ClassVar[bool] = False
    """Whether publish and undo write data: for a lab without the ability SWAPS_FILES."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.spark = spark
        self.name = name

    def elsewhere(self) -> LabTable:
        """The same table as another process has it, in a session of its own."""
        return type(self)(self.spark.newSession(), self.name)

    @property
    def people(self) -> SparkSession:
        """The session that its owner and its writers use."""
        return self.spark

    @abstractmethod
    def target(self) -> Target:
        """The adapter under test, new, with no memory."""

    @abstractmethod
    def root(self) -> Path:
        """The folder of the table."""

    @abstractmethod
    def rows_at(self, version: str) -> Rows:
        """What time travel to a version of the live table shows."""

    @abstractmethod
    def compact(self, day: int | None = None) -> None:
        """Rewrite the files of a day, or of the whole table, into one each."""

    @abstractmethod
    def expire(self, how: str) -> None:
        """Let go of everything but the newest version, in one of the ways in `expiries`."""

    @abstractmethod
    def traces(self) -> set[str]:
        """What a stranger finds of ours beside the live table: refs, hidden folders."""

    @abstractmethod
    def retire(self) -> None:
        """Make it so that whatever the table removed was removed longer ago than its owner wants it kept."""

    @abstractmethod
    def lost_answer(self, where: str) -> AbstractContextManager[None]:
        """While it is open, a commit to the table lands and whoever made it gets an error instead of the answer."""

    @abstractmethod
    def change_spec(self) -> None:
        """Partition the table in another way from now on. Called only when the format can."""

    def append(self, *rows: Row) -> None:
        values = ", ".join(f"({number}, {day_literal(day)}, CAST({v} AS DOUBLE))" for number, day, v in rows)
        self.people.sql(f"INSERT INTO {self.name} SELECT /*+ COALESCE(1) */ * FROM VALUES {values}")

    def delete(self, where: str) -> None:
        self.people.sql(f"DELETE FROM {self.name} WHERE {where}")

    def somebody(self, writer: Writer, day: int, shape: Shape) -> None:
        """One commit of somebody else on one day. All but a compaction change what the table says of that day."""
        on_day = f"day = {day_literal(day)}"
        match writer:
            case Writer.APPEND:
                self.people.sql(f"INSERT INTO {self.name} {shape.select(shape.absent, day, '1')}")
            case Writer.DELETE:
                self.delete(f"{on_day} AND {shape.key} = {shape.present}")
            case Writer.UPDATE:
                change = f"SET {shape.value} = {shape.value} + 1"
                self.people.sql(f"UPDATE {self.name} {change} WHERE {on_day} AND {shape.key} = {shape.present}")
            case Writer.MERGE:
                self._merge(day, shape)
            case Writer.OVERWRITE:
                from pyspark.sql import functions as F

                rows = self.people.sql(shape.select(shape.present, day, "7"))
                rows.writeTo(self.name).overwrite(F.expr(on_day))
            case Writer.COMPACT:
                self.compact(day)

    def _merge(self, day: int, shape: Shape) -> None:
        rows = f"{shape.select(shape.present, day, '5')} UNION ALL {shape.select(shape.absent, day, '6')}"
        self.people.sql(
            f"MERGE INTO {self.name} t USING ({rows}) s "
            f"ON t.{shape.key} = s.{shape.key} AND t.day = s.day AND t.day = {day_literal(day)} "
            f"WHEN MATCHED THEN UPDATE SET {shape.value} = s.{shape.value} WHEN NOT MATCHED THEN INSERT *"
        )

    def add_column(self, name: str) -> None:
        self.people.sql(f"ALTER TABLE {self.name} ADD COLUMNS ({name} STRING)")

    def set_property(self, key: str, value: str) -> None:
        self.people.sql(f"ALTER TABLE {self.name} SET TBLPROPERTIES ('{key}' = '{value}')")

    def properties(self) -> dict[str, str]:
        """The table's properties, without those that only repeat which version is the newest."""
        found = self.people.sql(f"SHOW TBLPROPERTIES {self.name}").collect()
        return {row.key: row.value for row in found if row.key != "current-snapshot-id"}

    def rows(self) -> Rows:
        """What a reader sees now."""
        return Counter(tuple(row) for row in self.people.sql(f"SELECT * FROM {self.name}").collect())

    def values(self) -> list[Row]:
        """The rows of a table of this lab, days as numbers, in order."""
        rows = self.people.sql(f"SELECT id, day, v FROM {self.name}").collect()
        return sorted((row.id, (row.day - FIRST).days + 1, row.v) for row in rows)

    def data_files(self) -> set[str]:
        """Names of the data files in storage, live or not."""
        found = (path for path in self.root().rglob("*.parquet") if not path.name.startswith("."))
        return {path.name for path in found if "_delta_log" not in path.parts}


class Lab(ABC):
    """Makes tables of one format."""

    format: ClassVar[str]
    lacks: ClassVar[Mapping[Ability, str]]
    """Abilities that the format does not have, each with the reason."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    @abstractmethod
    def new_name(self) -> str:
        """A name that no table has, as SQL writes it."""

    @abstractmethod
    def table(self, name: str) -> LabTable:
        """A table of this format that exists already."""

    def create(self, *, partitioned: bool = True, columns: str = DDL, by: str = "day") -> LabTable:
        """A new, empty table under a name of its own, partitioned by the column `by` unless told otherwise."""
        name = self.new_name()
        partitioning = f"PARTITIONED BY ({by})" if partitioned else ""
        self.spark.sql(f"CREATE TABLE {name} ({columns}) USING {self.format} {partitioning}")
        return self.table(name)

    def capability(self, ability: Ability) -> Capability:
        reason = self.lacks.get(ability)
        return Capability(given=True) if reason is None else Capability(given=False, reason=reason)

    def three_days(self, *, split: bool = False) -> LabTable:
        """Days 1 to 3 with four rows each, ids 0 to 11, v = id; one file a day, or two with `split`."""
        rows = [(number, number % 3 + 1, float(number)) for number in range(12)]
        return self._filled(rows[:6], rows[6:]) if split else self._filled(rows)

    def week(self) -> LabTable:
        """Days 1 to 7 with two rows each in two files: id and v are the day's number, and that plus 100."""
        return self._filled(*([(day + more, day, float(day + more)) for day in range(1, 8)] for more in (0, 100)))

    def _filled(self, *commits: list[Row]) -> LabTable:
        table = self.create()
        for rows in commits:
            table.append(*rows)
        return table
