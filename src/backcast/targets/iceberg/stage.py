"""The stage: a branch at the base that only one run writes to, and that no reader of the table sees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from backcast import faults
from backcast.errors import Conflict, StateConflict
from backcast.model.table import Stage, StageCommit, StageWrite
from backcast.spark.iceberg.handle import TableHandle, head_of, parent_of, ref_of, snapshot_of
from backcast.spark.predicates import to_column, to_sql
from backcast.targets.iceberg.commits import find_commit, stage_properties
from backcast.targets.iceberg.retries import REF_ATTEMPTS, WRITE_ATTEMPTS, retrying
from backcast.targets.staging import staging_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_OPEN_FILES = 50
"""A file being written holds megabytes: a task must not have one open for every partition of a big group."""


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


def write_stage(handle: TableHandle, stage: Stage, write: StageWrite, rows: DataFrame) -> StageCommit:
    """Replace the predicate's rows on the branch. A lost race repeats the job; anything else fails the chunks."""
    faults.point("chunk.before-commit")
    replace = _replace_rows if write.exact else _replace_files
    with staging_errors(write, frozenset({"CommitFailedException"})):
        for attempt in retrying(WRITE_ATTEMPTS):
            with attempt:
                replace(handle, stage, write, rows)
    faults.point("chunk.after-commit")
    return find_commit(handle, stage, write.token)


def _replace_files(handle: TableHandle, stage: Stage, write: StageWrite, rows: DataFrame) -> None:
    where = to_column(write.predicate, handle.types(handle.load()))
    _writer(handle, stage, write, rows).overwrite(where)


def _replace_rows(handle: TableHandle, stage: Stage, write: StageWrite, rows: DataFrame) -> None:
    """Two commits, both with the token: a late DELETE of a stale process is as much a stray as its rows would be.

    Nothing is recorded before the second has landed, so a stage cut short between them counts as not written.
    """
    where = to_sql(write.predicate, handle.types(handle.load()))
    with _session_properties(handle, stage_properties(stage.run_id, write.chunk_ids, write.token)):
        handle.spark.sql(f"DELETE FROM {handle.branch(stage.branch)} WHERE {where}")
    _writer(handle, stage, write, rows).append()


@contextmanager
def _session_properties(handle: TableHandle, properties: dict[str, str]) -> Iterator[None]:
    """SQL takes no write options: the session's settings are the only way to a snapshot property."""
    names = {f"spark.sql.iceberg.snapshot-property.{key}": value for key, value in properties.items()}
    for name, value in names.items():
        handle.spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in names:
            handle.spark.conf.unset(name)


def _writer(handle: TableHandle, stage: Stage, write: StageWrite, rows: DataFrame) -> Any:
    writer = rows.writeTo(handle.branch(stage.branch))
    for key, value in stage_properties(stage.run_id, write.chunk_ids, write.token).items():
        writer = writer.option(f"snapshot-property.{key}", value)
    if len(write.chunk_ids) > _OPEN_FILES:
        # Rows are sorted by partition first, so that a task writes one file after the other.
        writer = writer.option("fanout-enabled", "false")
    return writer
