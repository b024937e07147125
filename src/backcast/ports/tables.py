"""What the flow asks of tables: versions to read, a hidden stage to write, one commit to publish."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from backcast.model.scope import EVERYTHING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.finding import Finding
    from backcast.model.scope import Predicate
    from backcast.model.table import (
        Carry,
        Change,
        Claim,
        FileList,
        Forget,
        Movement,
        NetChange,
        Rewrite,
        Stage,
        StageCommit,
        StageWrite,
        TableFacts,
    )


class Source(Protocol):
    """An input that can be pinned to one version and read at it. Never written to."""

    def facts(self, version: str | None = None) -> TableFacts:
        """The given version, or the newest. Raises Drifted when a given version is gone."""

    def version_at(self, moment: datetime) -> str | None:
        """The version that was the newest then; None when there was none, or nobody knows any more."""

    def files(self, version: str | None, predicate: Predicate) -> FileList:
        """Files of that version that can hold matching rows; empty for version None."""

    def read(self, version: str | None, predicate: Predicate) -> DataFrame:
        """Exactly the matching rows of that version."""

    def lost(self, version: str | None, predicate: Predicate) -> str | None:
        """A file that reading these rows needs and that storage no longer has, if one is found without much ado."""

    def proven(self, version: str | None, predicate: Predicate, claims: Sequence[Claim]) -> frozenset[Claim]:
        """Claims that hold for every row of the files that can hold matching ones, by metadata alone.

        Those that are not returned may hold too. A null breaks no claim about ends.
        """


Rest = Callable[[float], None]
"""Waits so many seconds, as long as the right to commit lasts."""


Turn = Callable[[], AbstractContextManager[Rest]]
"""Waits until nobody else commits to the same stage, and keeps others waiting until it is left."""


def no_turn() -> AbstractContextManager[Rest]:
    """Alone on the stage, and in a hurry."""
    return nullcontext(lambda seconds: None)


class StageTarget(Source, Protocol):
    """The hidden side of a target. Nothing here changes what readers see."""

    def open_stage(self, stage: Stage, scope: Predicate | None = EVERYTHING) -> None:
        """Create the stage at its base, able to hold writes in that scope. Does nothing when it is there already.

        Without a scope it may lack every row of the base: enough for appends.
        """

    def write(self, stage: Stage, write: StageWrite, rows: DataFrame, turn: Turn = no_turn) -> StageCommit:
        """Replace the write's predicate on the stage by the rows, also when there are none; or add them to what is
        there, or merge them into it by key, as the write's mode says.

        Repeating it is harmless. What would disturb other commits on the stage is done inside `turn()`.
        """

    def carry(self, stage: Stage, carry: Carry) -> None:
        """Put another stage's files in place of those that this one has there, in one commit without data.

        Its history then has the commits that are carried. Repeating it is harmless.
        """

    def history(self, stage: Stage) -> tuple[StageCommit, ...]:
        """The stage's commits, oldest first, read from the table itself. Empty when there is no stage."""

    def read_files(self, version: str | None, paths: frozenset[str], near: Predicate) -> DataFrame:
        """Every row of exactly these files of a version; most of them match `near`."""

    def net_change(self, stage: Stage, staged: str, scope: Predicate) -> NetChange:
        """All commits of the stage up to `staged` folded into files added to and removed from the base."""


class Target(StageTarget, Protocol):
    """The visible side of a target: one-commit changes, and how to learn whether one landed."""

    def findings(self, files: FileList, undo_window: timedelta) -> list[Finding]:
        """What this format makes impossible or risky for the table as it is, each with the remedy."""

    def movement(self, base: str | None, scope: Predicate) -> Movement:
        """How the scope's files changed between the base and the head of the live table."""

    def missing(self, paths: frozenset[str]) -> frozenset[str]:
        """Those of the files that storage no longer has."""

    def commit(self, change: Change) -> str:
        """Land the change or raise: Conflict when it certainly did not land, OutcomeUnknown when nobody can say."""

    def probe(self, fence: str) -> str | None:
        """The version that a commit with this fence produced, or None when it did not land."""

    def changed(self, version: str) -> tuple[frozenset[str], frozenset[str]]:
        """Files that the commit of that version of the live table added and removed."""

    def properties(self, version: str) -> dict[str, str]:
        """What the commit of that version of the live table says about itself, as far as we wrote it.

        Raises Drifted when the table no longer has that version.
        """

    def rewritten(self, version: str) -> Rewrite | None:
        """The files of a commit that had to write rows instead of swapping exact files; None for one that swapped."""

    def forget(self, forget: Forget) -> int:
        """Drop refs, forget versions, delete files that only those reached; the number of files deleted. Repeatable."""

    def sweep(self) -> int:
        """Delete what forgotten stages left because the table needed it, and no longer does; how many files."""
