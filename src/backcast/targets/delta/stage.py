"""The stage: a Delta table of its own in the folder of the live one, with the scope's files as the base has them.

It is a shallow clone of the scope alone. That is all a run may change, so opening a stage costs by the scope and not by
the table, no name appears in a catalog, and what would get in the way (deletion vectors, change data feed, clean-up of
the log) is switched off on the stage and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

from backcast import faults
from backcast.model.scope import Predicate
from backcast.model.table import PublishMode, Stage, StageCommit, StageWrite
from backcast.ports import Turn
from backcast.spark.delta.handle import DeltaHandle, Version
from backcast.spark.delta.vectors import absolute
from backcast.targets.delta.append import append_files
from backcast.targets.delta.commits import find_commit
from backcast.targets.delta.merge import merge_files
from backcast.targets.delta.publish import NOT_LANDED
from backcast.targets.delta.replace import replace_rows
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
_FEW = 50
"""A checksum names its files up to so many, as Delta's own do."""
_NOT_CARRIED_OVER = frozenset({"clustering", "domainMetadata", "changeDataFeed", "inCommitTimestamp"})
"""Features of the live table that say nothing about its files."""


def open_stage(handle: DeltaHandle, stage: Stage, scope: Predicate | None) -> None:
    """Write the first commit of the stage, unless it is there. Without a scope it names no file."""
    log = handle.stage_log(stage.branch)
    if handle.jvm.has_commit(log, 0):
        return
    base = handle.at(stage.base)
    files = handle.scope_files(scope).at(base) if scope is not None else {}
    info = {"operation": "CLONE", "operationParameters": {}, "timestamp": handle.jvm.committed_at(base.snapshot)}
    protocol, metadata = _protocol(base), _metadata(base)
    adds = [
        {**absolute(base.root, file.add), "path": base.root.absolute(file.add["path"]), "dataChange": True}
        for file in files.values()
    ]
    first = [{"commitInfo": info}, {"protocol": protocol}, {"metaData": metadata}, *({"add": add} for add in adds)]
    handle.jvm.create_log(log, first, _checksum(protocol, metadata, adds))


def _checksum(protocol: dict[str, Any], metadata: dict[str, Any], adds: list[dict[str, Any]]) -> dict[str, Any]:
    """What the first commit sums up to, as the log's protocol has it."""
    return {
        "tableSizeBytes": sum(int(add["size"]) for add in adds),
        "numFiles": len(adds),
        "numMetadata": 1,
        "numProtocol": 1,
        "setTransactions": [],
        "domainMetadata": [],
        "metadata": metadata,
        "protocol": protocol,
        **({"allFiles": adds} if len(adds) <= _FEW else {}),
    }


def _metadata(base: Version) -> dict[str, Any]:
    metadata = dict(base.layout.metadata, id=str(uuid4()), configuration=base.layout.properties | _OFF)
    metadata.pop("name", None)
    for key in ("delta.enableInCommitTimestamps", "delta.inCommitTimestampEnablementVersion"):
        metadata["configuration"].pop(key, None)
    return metadata


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


_WAYS = {PublishMode.REPLACE: replace_rows, PublishMode.APPEND: append_files, PublishMode.MERGE: merge_files}
