"""The port Target over a Delta table. Each method is one file of this folder."""

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
from backcast.spark.delta.fit import committing_problem
from backcast.spark.delta.reader import DeltaReader
from backcast.targets.delta import carry as carrying
from backcast.targets.delta import change as folding
from backcast.targets.delta import commits, live, publish, rewrite
from backcast.targets.delta import forget as forgetting
from backcast.targets.delta import stage as staging
from backcast.targets.delta.findings import findings as found

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DeltaTarget(DeltaReader):
    """A table under management. Only `commit` changes what its readers see; none of it alters a table property."""

    def open_stage(self, stage: Stage, scope: Predicate | None = EVERYTHING) -> None:
        with self._errors("opening a stage on"):
            staging.open_stage(self._handle, stage, scope)

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
        with self._errors("looking at"):
            return found(self._handle, files, undo_window)

    def movement(self, base: str | None, scope: Predicate) -> Movement:
        with self._errors("comparing base and head of"):
            return live.movement(self._handle, base, scope)

    def missing(self, paths: frozenset[str]) -> frozenset[str]:
        with self._errors("looking for files of"):
            return publish.missing(self._handle, paths)

    def commit(self, change: Change) -> str:
        with self._errors("committing to"):
            exact = committing_problem(self._handle.jvm) is None
            return publish.commit(self._handle, change) if exact else rewrite.commit(self._handle, change)

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
        with self._errors("looking at a commit on"):
            return rewrite.rewritten(self._handle, version)

    def forget(self, forget: Forget) -> int:
        with self._errors("forgetting stages of"):
            return forgetting.forget(self._handle, forget)

    def sweep(self) -> int:
        with self._errors("sweeping stages of"):
            return forgetting.sweep(self._handle)
