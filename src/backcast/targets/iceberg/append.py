"""Rows added to a stage: files in, and out goes only what the same chunks had added before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backcast import faults
from backcast.model.table import Stage, StageWrite
from backcast.ports import Turn
from backcast.spark.iceberg.handle import TableHandle
from backcast.targets.iceberg.commits import changes_of, chunks_of, own_snapshots
from backcast.targets.iceberg.pace import seconds_to_wait
from backcast.targets.iceberg.replace import commit_files, write_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def append_files(handle: TableHandle, stage: Stage, write: StageWrite, rows: DataFrame, turn: Turn) -> None:
    """One commit. What goes is looked up on the head that it lands on: also the rows of a stale process."""

    def take_out(table: Any, overwrite: Any) -> None:
        for data_file in _before(handle, table, stage, write):
            overwrite.deleteFile(data_file)

    files = write_files(handle, stage, write, rows)
    faults.point("chunk.before-commit")
    with turn() as rest:
        rest(seconds_to_wait(handle.load(), stage))
        commit_files(handle, stage, write, files, take_out)


def _before(handle: TableHandle, table: Any, stage: Stage, write: StageWrite) -> list[Any]:
    """Files that commits of any of these chunks added and that are still there.

    All files of such a commit, also those of other chunks in it: who finds it replaced repeats all of its chunks.
    """
    oldest_first = list(own_snapshots(table, stage))[::-1]
    mine = set(write.chunk_ids)
    if not any(mine.intersection(chunks_of(each)) for each in oldest_first):
        return []
    found: dict[str, Any] = {}
    for snapshot in oldest_first:
        changes = changes_of(handle, table, snapshot)
        for data_file in handle.items(changes.removedDataFiles()):
            found.pop(data_file.location(), None)
        if mine.intersection(chunks_of(snapshot)):
            found |= {each.location(): each for each in handle.items(changes.addedDataFiles())}
    return list(found.values())
