"""Delta tables in the hands of other people."""

from __future__ import annotations

import hashlib
import itertools
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from backcast.targets.delta.target import DeltaTarget
from backcast.testing.target_lab import Ability, Lab, LabTable, Row, Rows, day_literal
from backcast.testing.target_wire import GATEWAY, answer_lost

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AFTER_LOG = "after the log was written"
_PEOPLE = {
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # VACUUM lists a folder in as many tasks as this, ten thousand unless told otherwise.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
    # Delta plans many small jobs, and on a few rows to plan them twice and to compile them is most of their time.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_MANIFESTS = "delta.compatibility.symlinkFormatManifest.enabled"
_numbers = itertools.count(1)


@cache
def _people(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    for key, value in _PEOPLE.items():
        session.conf.set(key, value)
    return session


class DeltaTable(LabTable):
    """A table by its path: delta.`/folder`."""

    expiries: ClassVar[tuple[str, ...]] = ("VACUUM", "VACUUM LITE")
    lost_answers: ClassVar[tuple[str, ...]] = (GATEWAY, AFTER_LOG)

    @property
    def people(self) -> SparkSession:
        return _people(self.spark)

    def target(self) -> DeltaTarget:
        return DeltaTarget(self.spark, self.name)

    def root(self) -> Path:
        return Path(self.name.removeprefix("delta.`").removesuffix("`"))

    def rows_at(self, version: str) -> Rows:
        found = self.people.sql(f"SELECT * FROM {self.name} VERSION AS OF {version}").collect()
        return Counter(tuple(row) for row in found)

    def compact(self, day: int | None = None) -> None:
        where = f"WHERE day = {day_literal(day)}" if day else ""
        self.people.sql(f"OPTIMIZE {self.name} {where}").collect()

    def expire(self, how: str) -> None:
        lite = "LITE" if how == "VACUUM LITE" else ""
        self.people.sql(f"VACUUM {self.name} {lite} RETAIN 0 HOURS").collect()

    def traces(self) -> set[str]:
        folder = self.root() / "_backcast"
        return {each.name for each in folder.iterdir()} if folder.is_dir() else set()

    def retire(self) -> None:
        self.set_property("delta.deletedFileRetentionDuration", "interval 0 seconds")

    def lost_answer(self, where: str) -> AbstractContextManager[None]:
        return answer_lost(self.spark, "commit") if where == GATEWAY else self._broken_manifests()

    @contextmanager
    def _broken_manifests(self) -> Iterator[None]:
        """Delta writes manifests for other readers after the log; where that fails, the commit's maker hears of it."""
        in_the_way = self.root() / "_symlink_format_manifest"
        self.set_property(_MANIFESTS, "true")
        in_the_way.touch()
        try:
            yield
        finally:
            in_the_way.unlink()
            self.people.sql(f"ALTER TABLE {self.name} UNSET TBLPROPERTIES ('{_MANIFESTS}')")

    def change_spec(self) -> None:
        raise NotImplementedError


class RewrittenTable(DeltaTable):
    """One whose publish and undo write its rows."""

    writes_data: ClassVar[bool] = True
    expiries: ClassVar[tuple[str, ...]] = ("VACUUM",)

    def lost_answer(self, where: str) -> AbstractContextManager[None]:
        return answer_lost(self.spark, "save") if where == GATEWAY else super().lost_answer(where)


class DeltaLab(Lab):
    """Tables in folders below one folder."""

    format: ClassVar[str] = "delta"
    lacks: ClassVar[Mapping[Ability, str]] = {
        Ability.EMPTY_HAS_NO_VERSION: "creating a Delta table is its version 0",
        Ability.SPEC_CHANGES: "the partition columns of a Delta table never change",
        Ability.PINS_SURVIVE: "Delta has no tags: VACUUM takes files that were removed longer ago than its retention",
        Ability.BOUNDS_PROTECT: "Delta looks for conflicts by partition values alone, never by column bounds",
        Ability.PROPERTIES_PASS: "Delta fails a transaction that was opened before a change of the table's metadata",
        Ability.STRAYS_REACH_THE_STAGE: "a chunk fails whose rows its condition does not hold, as with replaceWhere",
    }

    def __init__(self, spark: SparkSession, folder: Path, templates: Path | None = None) -> None:
        """With a folder for templates, tables that are filled alike are copies of one that was."""
        super().__init__(spark)
        self._folder = folder
        self._templates = templates

    def new_name(self) -> str:
        return f"delta.`{self._folder}/t{next(_numbers)}`"

    def table(self, name: str) -> DeltaTable:
        return DeltaTable(self.spark, name)

    def _filled(self, *commits: list[Row]) -> LabTable:
        if self._templates is None:
            return super()._filled(*commits)
        template = self._templates / hashlib.sha256(repr(commits).encode()).hexdigest()[:16]
        if not template.exists():
            shutil.copytree(super()._filled(*commits).root(), template)
        table = self.table(self.new_name())
        shutil.copytree(template, table.root())
        return table


class RewritingLab(DeltaLab):
    """For a version of Delta on which commits of exact files are not proven."""

    lacks: ClassVar[Mapping[Ability, str]] = {
        **{
            ability: reason
            for ability, reason in DeltaLab.lacks.items()
            # The transaction is opened when rows are written: what came before it is seen and not met.
            if ability not in (Ability.BOUNDS_PROTECT, Ability.PROPERTIES_PASS)
        },
        Ability.SWAPS_FILES: "Delta's public interface takes rows and no files",
        Ability.UNDO_IGNORES_ARRIVALS: "an undo writes every row of the scope; rows that arrived are not among them",
    }

    def table(self, name: str) -> RewrittenTable:
        return RewrittenTable(self.spark, name)
