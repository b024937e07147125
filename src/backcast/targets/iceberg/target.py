"""The port Target over an Iceberg table. Each method is one file of this folder."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from backcast.model.finding import Finding
from backcast.model.scope import EVERYTHING, Predicate
from backcast.model.table import (
    Carry,
    Change,
    FileList,
    Forget,
    Movement,
    NetChange,
    Rewrite,
    Stage,
    StageCommit,
    StageWrite,
)
from backcast.ports import Turn, no_turn
from backcast.spark.iceberg.reader import IcebergReader
from backcast.spark.predicates import to_column
from backcast.targets.iceberg import carry as carrying
from backcast.targets.iceberg import change as folding
from backcast.targets.iceberg import commits, live, publish
from backcast.targets.iceberg import forget as forgetting
from backcast.targets.iceberg import stage as staging
from backcast.targets.iceberg.findings import findings as found

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class IcebergTarget(IcebergReader):
    """A table under management. Only `commit` changes what its readers see; none of it alters a table property."""

    def read(self, version: str | None, predicate: Predicate) -> DataFrame:
        """With today's columns: the newest version may be older than the newest change of the schema."""
        rows = super().read(version, predicate)
        with self._errors("reading"):
            today = self._handle.spark.table(self._handle.quoted)
        if version is None or rows.dtypes == today.dtypes:
            return rows
        paths = frozenset(file.path for file in self.files(version, predicate).files)
        found = self.read_files(version, paths, predicate)
        return found.where(to_column(predicate, dict(found.dtypes))) if predicate.clauses else found

    def open_stage(self, stage: Stage, scope: Predicate | None = EVERYTHING) -> None:
        """A branch holds the whole table at no cost, so the scope is of no interest."""
        with self._errors("opening a stage on"):
            staging.open_stage(self._handle, stage)

    def write(self, stage: Stage, write: StageWrite, rows: DataFrame, turn: Turn = no_turn) -> StageCommit:
        with self._errors("writing to the stage of"):
            return staging.write_stage(self._handle, stage, write, rows, turn)

    def carry(self, stage: Stage, carry: Carry) -> None:
        with self._errors("carrying chunks to the stage of"):
            carrying.carry(self._handle, stage, carry)

    def history(self, stage: Stage) -> tuple[StageCommit, ...]:
        with self._errors("reading the stage of"):
            return commits.history(self._handle, stage)

    def net_change(self, stage: Stage, staged: str, scope: Predicate) -> NetChange:
        with self._errors("folding the stage of"):
            return folding.net_change(self._handle, stage, staged, scope)

    def findings(self, files: FileList, undo_window: timedelta) -> list[Finding]:
        return found(self.facts(), files)

    def movement(self, base: str | None, scope: Predicate) -> Movement:
        with self._errors("comparing base and head of"):
            return live.movement(self._handle, base, scope)

    def missing(self, paths: frozenset[str]) -> frozenset[str]:
        with self._errors("looking for files of"):
            return publish.missing(self._handle, paths)

    def commit(self, change: Change) -> str:
        with self._errors("committing to"):
            return publish.commit(self._handle, change)

    def probe(self, fence: str) -> str | None:
        with self._errors("looking for a commit on"):
            return publish.probe(self._handle, fence)

    def changed(self, version: str) -> tuple[frozenset[str], frozenset[str]]:
        with self._errors("looking at a commit on"):
            return commits.changed(self._handle, version)

    def properties(self, version: str) -> dict[str, str]:
        with self._errors("looking at a commit on"):
            return commits.properties(self._handle, version)

    def rewritten(self, version: str) -> Rewrite | None:
        """Iceberg's interface for exact commits is public: nothing is ever rewritten."""
        return None

    def forget(self, forget: Forget) -> int:
        with self._errors("forgetting versions of"):
            return forgetting.forget(self._handle, forget)

    def sweep(self) -> int:
        """Nothing to do: what `forget` leaves is referenced by the table, whose owner's expiry takes it."""
        return 0
