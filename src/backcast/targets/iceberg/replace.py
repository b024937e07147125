"""How rows take the place of others on a stage: whole files after a job without a commit, or rows by two commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from backcast import faults
from backcast.errors import StateConflict
from backcast.model.table import PublishMode, Stage, StageWrite
from backcast.ports import Turn
from backcast.spark.gateway import NOT_LANDED, find_cause, is_jvm_error
from backcast.spark.iceberg.expressions import to_expression
from backcast.spark.iceberg.handle import TableHandle, ref_of
from backcast.spark.inspection import is_narrow
from backcast.spark.predicates import to_sql
from backcast.spark.temporarily import temporarily
from backcast.targets.iceberg.commits import has_commit, stage_properties
from backcast.targets.iceberg.pace import seconds_to_wait
from backcast.targets.iceberg.retries import COMMIT_ATTEMPTS, WRITE_ATTEMPTS, retrying

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TakeOut = Callable[[Any, Any], None]
"""Given the table and the overwrite of its branch: what goes."""

_OPEN_FILES = 50
"""A file being written holds megabytes: a task must not have one open for every partition of a big group."""


def replace_files(handle: TableHandle, stage: Stage, write: StageWrite, rows: DataFrame, turn: Turn) -> None:
    """A job writes the files, and a commit of its own puts them in place of those that the predicate covers.

    So jobs run side by side while commits queue, and a commit that lost a race is repeated without its job.
    """

    def take_out(table: Any, overwrite: Any) -> None:
        overwrite.overwriteByRowFilter(to_expression(handle, write.predicate, handle.types(table)))

    files = write_files(handle, stage, write, rows)
    faults.point("chunk.before-commit")
    with turn() as rest:
        rest(seconds_to_wait(handle.load(), stage))
        commit_files(handle, stage, write, files, take_out)


def write_files(handle: TableHandle, stage: Stage, write: StageWrite, rows: DataFrame) -> list[Any]:
    """The files that a job wrote, and nobody committed."""
    job = uuid4().hex
    written = handle.java("spark.FileRewriteCoordinator").get()
    # Iceberg keeps what was written under this option in memory and leaves the commit to whoever asks for it.
    _writer(handle, stage, write, rows).option("rewritten-file-scan-task-set-id", job).append()
    table = handle.load()
    try:
        return list(handle.items(written.fetchNewFiles(table, job)))
    finally:
        written.clearRewrite(table, job)


def commit_files(
    handle: TableHandle,
    stage: Stage,
    write: StageWrite,
    files: list[Any],
    take_out: TakeOut,
    told: Mapping[str, str] | None = None,
) -> None:
    """Land the files in one commit that says who wrote them and is told `told` too.

    `take_out` says, each time that it is tried, what goes in the same commit.
    """
    for attempt in retrying(COMMIT_ATTEMPTS):
        with attempt:
            _commit(handle, stage, write, files, take_out, told or {})


def _commit(
    handle: TableHandle,
    stage: Stage,
    write: StageWrite,
    files: list[Any],
    take_out: TakeOut,
    told: Mapping[str, str],
) -> None:
    """Compare and set the table's metadata, once. A refusal counts only when the commit is not there: a catalog that
    repeats a statement whose answer was lost is refused by its own first one.
    """
    table = handle.load()
    if ref_of(table, stage.branch) is None:
        # Iceberg would make the branch anew, at the live head, for a process that outlived a cancelled run.
        raise StateConflict(f"there is no branch {stage.branch}", hint="run the same command again")
    transaction = table.newTransaction()
    overwrite = transaction.newOverwrite().toBranch(stage.branch)
    take_out(table, overwrite)
    for data_file in files:
        overwrite.addFile(data_file)
    properties = stage_properties(stage.run_id, write.chunk_ids, write.token)
    for key, value in (*properties.items(), *told.items()):
        overwrite.set(key, value)
    overwrite.commit()
    try:
        transaction.underlyingOps().commit(transaction.startMetadata(), transaction.currentMetadata())
    except Exception as error:
        if not is_jvm_error(error) or not find_cause(error, NOT_LANDED) or not has_commit(handle, stage, write.token):
            raise


def replace_rows(handle: TableHandle, stage: Stage, write: StageWrite, rows: DataFrame, turn: Turn) -> None:
    """Two commits, both with the token: a late DELETE of a stale process is as much a stray as its rows would be.

    Nothing is recorded before the second has landed, so a stage cut short between them counts as not written.
    """
    where = to_sql(write.predicate, handle.types(handle.load()))
    own = stage_properties(stage.run_id, write.chunk_ids, write.token)
    # SQL takes no write options.
    properties = {f"spark.sql.iceberg.snapshot-property.{key}": value for key, value in own.items()}
    with turn() as rest:
        rest(seconds_to_wait(handle.load(), stage))
        faults.point("chunk.before-commit")
        for attempt in retrying(WRITE_ATTEMPTS):
            with attempt:
                with temporarily(handle.spark, properties):
                    handle.spark.sql(f"DELETE FROM {handle.branch(stage.branch)} WHERE {where}")
                _writer(handle, stage, write, rows).append()


def _writer(handle: TableHandle, stage: Stage, write: StageWrite, rows: DataFrame) -> Any:
    """Always on the branch: whatever becomes of an option, nothing written here may reach the live table."""
    writer = rows.writeTo(handle.branch(stage.branch))
    for key, value in stage_properties(stage.run_id, write.chunk_ids, write.token).items():
        writer = writer.option(f"snapshot-property.{key}", value)
    together = write.together and _is_unordered(handle) and is_narrow(rows)
    if together:
        # Iceberg shuffles all rows by partition otherwise, which took a fifth of a run's time.
        writer = writer.option("distribution-mode", "none")
    if together or _partitions(handle, write) > _OPEN_FILES:
        # Rows are sorted by partition first, so that a task writes one file after the other.
        writer = writer.option("fanout-enabled", "false")
    return writer


def _is_unordered(handle: TableHandle) -> bool:
    """Whether the table's owner left it to writers how rows are distributed and sorted."""
    table = handle.load()
    return bool(table.sortOrder().isUnsorted()) and not table.properties().containsKey("write.distribution-mode")


def _partitions(handle: TableHandle, write: StageWrite) -> float:
    """The most that it may write to: chunks where time alone divides the table, else as many as it replaces files.

    40 days of 24 shards, taken for 40, took 2 GiB. A chunk that is added or merged may reach any partition.
    """
    chunks, fields = len(write.chunk_ids), handle.load().spec().fields().size()
    if write.mode is not PublishMode.REPLACE:
        return inf if fields else 1
    if fields <= 1:
        return chunks
    return inf if write.files is None else max(chunks, write.files)
