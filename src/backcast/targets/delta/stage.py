"""The stage: a Delta table of its own in the folder of the live one, with the scope's files as the base has them.

It is a shallow clone of the scope alone: its first commit names those files by absolute path. That is all a run may
change, so opening a stage costs by the scope and not by the table, no name appears in a catalog, and what would get in
the way (deletion vectors, change data feed, clean-up of the log) is switched off on the stage and nowhere else.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from backcast import faults
from backcast.errors import StateConflict
from backcast.model.scope import Predicate
from backcast.model.table import PublishMode, Stage, StageCommit, StageWrite
from backcast.ports import Turn
from backcast.spark.delta.handle import STAGES, DeltaHandle, Version
from backcast.spark.predicates import to_sql
from backcast.targets.delta.append import append_files
from backcast.targets.delta.commits import find_commit, stage_note
from backcast.targets.delta.merge import merge_files
from backcast.targets.delta.publish import NOT_LANDED
from backcast.targets.delta.replace_where import replace_where
from backcast.targets.staging import staging_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OFF = {
    "delta.enableDeletionVectors": "false",
    "delta.enableChangeDataFeed": "false",
    "delta.enableExpiredLogCleanup": "false",
    "delta.checkpointInterval": "100000",
    "delta.autoOptimize.autoCompact": "false",
    "delta.autoOptimize.optimizeWrite": "false",
}
_NOT_CARRIED_OVER = frozenset({"clustering", "domainMetadata", "changeDataFeed", "inCommitTimestamp"})
"""Features of the live table that say nothing about its files."""


def open_stage(handle: DeltaHandle, stage: Stage, scope: Predicate | None) -> None:
    """Write the first commit of the stage, unless it is there. Without a scope it names no file."""
    log = handle.stage_log(stage.branch)
    if handle.jvm.has_commit(log, 0):
        return
    base = handle.at(stage.base)
    files = handle.scope_files(scope).at(base) if scope is not None else {}
    handle.jvm.create_log(log, _first_commit(base, files.values()))


def _first_commit(base: Version, files: Any) -> list[dict[str, Any]]:
    metadata = dict(base.layout.metadata, id=str(uuid4()), configuration=base.layout.properties | _OFF)
    metadata.pop("name", None)
    for key in ("delta.enableInCommitTimestamps", "delta.inCommitTimestampEnablementVersion"):
        metadata["configuration"].pop(key, None)
    adds = [{"add": {**file.add, "path": base.root.absolute(file.add["path"]), "dataChange": True}} for file in files]
    info = {"operation": "CLONE", "operationParameters": {}, "timestamp": int(base.snapshot.timestamp())}
    return [{"commitInfo": info}, {"protocol": _protocol(base)}, {"metaData": metadata}, *adds]


def _protocol(base: Version) -> dict[str, Any]:
    protocol = dict(base.layout.protocol)
    for key in ("readerFeatures", "writerFeatures"):
        if protocol.get(key):
            protocol[key] = [name for name in protocol[key] if name not in _NOT_CARRIED_OVER]
    return protocol


def write_stage(handle: DeltaHandle, stage: Stage, write: StageWrite, rows: DataFrame, turn: Turn) -> StageCommit:
    """Replace the predicate's rows on the stage, or add or merge the rows, in one commit."""
    with staging_errors(write, NOT_LANDED):
        _WAYS[write.mode](handle, stage, write, rows, turn)
    faults.point("chunk.after-commit")
    return find_commit(handle, stage, write.token)


def _replace(handle: DeltaHandle, stage: Stage, write: StageWrite, rows: DataFrame, turn: Turn) -> None:
    """Rows beside the predicate in the same files are carried over.

    Delta tells writers of other partitions apart by itself. Where the predicate is about other columns, every file
    that somebody else adds might matter, and the job itself waits for its turn.
    """
    faults.point("chunk.before-commit")
    if not handle.jvm.has_commit(handle.stage_log(stage.branch), 0):
        # Delta would make the stage anew, for a process that outlived a cancelled run.
        raise StateConflict(f"there is no stage {stage.branch}", hint="run the same command again")
    layout = handle.at().layout
    where = to_sql(write.predicate, layout.types)
    apart = {clause.column for clause in write.predicate.clauses} <= set(layout.partition_columns)
    note = stage_note(stage.run_id, write.chunk_ids, write.token)
    writer = replace_where(rows, where, note, (f"backcast:{stage.run_id}:{write.token}", 1))
    with nullcontext() if apart else turn():
        writer.save(f"{handle.root.path}/{STAGES}/{stage.branch}")


_WAYS = {PublishMode.REPLACE: _replace, PublishMode.APPEND: append_files, PublishMode.MERGE: merge_files}
