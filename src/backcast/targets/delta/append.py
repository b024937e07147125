"""Rows added to a stage: files in, and out goes only what the same chunks had added before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast import faults
from backcast.model.scope import EVERYTHING
from backcast.model.table import Stage, StageWrite
from backcast.ports import Turn
from backcast.spark.delta.handle import DataFile, DeltaHandle, Version
from backcast.targets.delta.commits import stage_commits
from backcast.targets.delta.exact import by_partition, commit_files, newest, retrying, write_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def append_files(handle: DeltaHandle, stage: Stage, write: StageWrite, rows: DataFrame, turn: Turn) -> None:
    """One commit. What goes is looked up on the version that it lands on: also the rows of a stale process."""
    here = newest(handle, stage)
    come = write_files(handle, here, by_partition(here, rows) if here.layout.partition_columns else rows)
    faults.point("chunk.before-commit")
    with turn():
        for attempt in retrying():
            with attempt:
                here = newest(handle, stage)
                commit_files(handle, stage, write, here, come, _before(handle, here, write))


def _before(handle: DeltaHandle, here: Version, write: StageWrite) -> list[DataFile]:
    """Files that commits of any of these chunks added and that are still there.

    All files of such a commit, also those of other chunks in it: who finds it replaced repeats all of its chunks.
    """
    mine = set(write.chunk_ids)
    added = {
        here.root.canonical(add["path"])
        for commit in stage_commits(handle, here)
        if mine.intersection(commit.note.get("backcast.chunks", ()))
        for add in commit.adds
    }
    return [file for path, file in sorted(here.files(EVERYTHING).items()) if path in added] if added else []
