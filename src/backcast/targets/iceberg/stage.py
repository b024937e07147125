"""The stage: a branch at the base that only one run writes to, and that no reader of the table sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backcast import faults
from backcast.errors import Conflict, StateConflict
from backcast.model.table import PublishMode, Stage, StageCommit, StageWrite
from backcast.ports import Turn
from backcast.spark.iceberg.handle import TableHandle, head_of, parent_of, ref_of, snapshot_of
from backcast.targets.iceberg.append import append_files
from backcast.targets.iceberg.commits import find_commit
from backcast.targets.iceberg.merge import merge_files
from backcast.targets.iceberg.replace import replace_files, replace_rows
from backcast.targets.iceberg.retries import REF_ATTEMPTS, retrying
from backcast.targets.staging import staging_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def open_stage(handle: TableHandle, stage: Stage) -> None:
    """Create what is missing of branch and base tag, in one commit."""
    for attempt in retrying(REF_ATTEMPTS):
        with attempt:
            table = handle.load()
            if stage.base is None:
                _open_on_empty(handle, table, stage)
            else:
                _open(table, stage, stage.base)


def _open(table: Any, stage: Stage, base: str) -> None:
    branch, tag = ref_of(table, stage.branch), ref_of(table, stage.base_tag)
    if tag not in (None, base):
        raise StateConflict(f"tag {stage.base_tag} is at {tag}, not at the base {base}", tag=stage.base_tag)
    if branch is not None and tag is not None:
        return
    snapshot_of(table, base)
    update = table.manageSnapshots()
    if branch is None:
        update = update.createBranch(stage.branch, int(base))
    if tag is None:
        update = update.createTag(stage.base_tag, int(base))
    update.commit()


def _open_on_empty(handle: TableHandle, table: Any, stage: Stage) -> None:
    """A branch of a table without snapshots starts with an empty one of its own.

    That one must have no parent: a live commit that lands first becomes its parent, and the stage would start there.
    """
    if ref_of(table, stage.branch) is not None:
        return
    if head_of(table) is None:
        table.newFastAppend().toBranch(stage.branch).commit()
        table = handle.load()
        if parent_of(table.snapshot(stage.branch)) is None:
            return
        table.manageSnapshots().removeBranch(stage.branch).commit()
    raise Conflict(f"{handle.name} was empty at the base and is not any more", hint="plan again", table=handle.name)


def _replace(handle: TableHandle, stage: Stage, write: StageWrite, rows: DataFrame, turn: Turn) -> None:
    replace = replace_rows if write.exact else replace_files
    replace(handle, stage, write, rows, turn)


_WAYS = {PublishMode.REPLACE: _replace, PublishMode.APPEND: append_files, PublishMode.MERGE: merge_files}


def write_stage(handle: TableHandle, stage: Stage, write: StageWrite, rows: DataFrame, turn: Turn) -> StageCommit:
    """Replace the predicate's rows on the branch, or add or merge the rows. What is no lost race fails the chunks."""
    if ref_of(handle.load(), stage.branch) is None:
        raise StateConflict(f"there is no branch {stage.branch}", hint="run the same command again")
    with staging_errors(write, frozenset({"CommitFailedException"})):
        _WAYS[write.mode](handle, stage, write, rows, turn)
    faults.point("chunk.after-commit")
    return find_commit(handle, stage, write.token)
