"""The rows of a predicate replaced on a stage, in one commit.

Where whole files match, exact files change places: Delta's own `replaceWhere` computes the stage's whole state and asks
for its files in Spark jobs, to find out what the log says at once. Elsewhere it carries over what lies beside.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from backcast import faults
from backcast.errors import ChunkFailed
from backcast.model.table import Stage, StageWrite
from backcast.ports import Turn
from backcast.spark.delta.bounds import FileBounds
from backcast.spark.delta.fit import committing_problem
from backcast.spark.delta.handle import STAGES, DeltaHandle, Version
from backcast.spark.inspection import is_narrow
from backcast.spark.predicates import to_sql
from backcast.targets.delta.commits import stage_note
from backcast.targets.delta.exact import by_partition, commit_files, stage_now, write_files
from backcast.targets.delta.replace_where import replace_where

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_FEW = 100
"""Each file that changes places is a few calls to the JVM: from so many on, Delta's own jobs cost less."""


def replace_rows(handle: DeltaHandle, stage: Stage, write: StageWrite, rows: DataFrame, turn: Turn) -> None:
    """Delta tells writers of other partitions apart by itself, but who lands first only where its log allows that.

    Where `replaceWhere` is about other columns, every file that somebody else adds might matter; and on a local disk,
    or on S3 by itself, two processes could land the same version. There the job itself waits for its turn.
    """
    here = stage_now(handle, stage)
    if here.layout.partition_columns and not (write.together and is_narrow(rows)):
        rows = by_partition(here, rows)
    where = to_sql(write.predicate, here.layout.types)
    apart = {clause.column for clause in write.predicate.clauses} <= set(here.layout.partition_columns)
    if apart and _is_plain(handle, here, write, rows):
        come = write_files(handle, here, rows)
        _refuse_strangers(here, write, come)
        faults.point("chunk.before-commit")
        with turn():
            here = stage_now(handle, stage)
            gone = here.files(write.predicate).values()
            commit_files(handle, stage, write, here, come, gone, where=where if write.predicate.clauses else None)
        return
    faults.point("chunk.before-commit")
    note = stage_note(stage.run_id, write.chunk_ids, write.token)
    writer = replace_where(rows, where, note, (f"backcast:{stage.run_id}:{write.token}", 1))
    with nullcontext() if apart and handle.keeps_processes_apart else turn():
        writer.save(f"{handle.root.path}/{STAGES}/{stage.branch}")


def _is_plain(handle: DeltaHandle, here: Version, write: StageWrite, rows: DataFrame) -> bool:
    """Few files, nothing to cast, and calls that are proven."""
    if dict(rows.dtypes) != here.layout.types or len(here.files(write.predicate)) > _FEW:
        return False
    return committing_problem(handle.jvm) is None


def _refuse_strangers(here: Version, write: StageWrite, come: list[dict[str, Any]]) -> None:
    """What `replaceWhere` asks of every row, asked of the files' partitions."""
    bounds = FileBounds(here.layout, write.predicate)
    strangers = [add["path"] for add in come if not bounds.holds_all(add)]
    if strangers:
        told = f"{len(strangers)} of {len(come)} files hold rows outside what is replaced: {strangers[0]}"
        hint = "return only rows of the window, then retry the run"
        raise ChunkFailed(told, hint=hint, chunks=",".join(write.chunk_ids))
