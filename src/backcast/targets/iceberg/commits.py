"""Commits on a stage, as the table's own metadata tells them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from backcast.errors import SparkFailed
from backcast.model.table import Merged, Stage, StageCommit
from backcast.spark.iceberg.files import Specs
from backcast.spark.iceberg.handle import TableHandle, parent_of, ref_of, snapshot_of

RUN, CHUNKS, TOKEN = "backcast.run", "backcast.chunks", "backcast.token"
"""Properties of a snapshot that a run wrote to its stage."""

_OURS = "backcast."

MERGED = "backcast.merged"
"""What became of the rows of a merge."""

CARRIED = "backcast.carried"
"""In place of chunks and token: those of the commits that were carried over from an earlier stage."""


def stage_properties(run_id: str, chunk_ids: tuple[str, ...], token: int) -> dict[str, str]:
    return {RUN: run_id, CHUNKS: json.dumps(chunk_ids), TOKEN: str(token)}


def snapshots_between(table: Any, start: str, base: str | None) -> tuple[list[Any], bool]:
    """Snapshots from `start` back to the base, newest first, without the base; and whether that chain is whole."""
    found: list[Any] = []
    version: str | None = start
    while version is not None and version != base:
        snapshot = table.snapshot(int(version))
        if snapshot is None:
            return found, False
        found.append(snapshot)
        version = parent_of(snapshot)
    return found, version == base


def changes_of(handle: TableHandle, table: Any, snapshot: Any) -> Any:
    """Files added and removed by one snapshot; removed ones come without column statistics."""
    return handle.java("SnapshotChanges").builderFor(table).snapshot(snapshot).build()


def changed(handle: TableHandle, version: str) -> tuple[frozenset[str], frozenset[str]]:
    """Paths of the files that one commit added and removed."""
    table = handle.load()
    changes = changes_of(handle, table, snapshot_of(table, version))
    added, removed = changes.addedDataFiles(), changes.removedDataFiles()
    return (
        frozenset(each.location() for each in handle.items(added)),
        frozenset(each.location() for each in handle.items(removed)),
    )


def properties(handle: TableHandle, version: str) -> dict[str, str]:
    """What a run wrote into the summary of that snapshot."""
    summary = snapshot_of(handle.load(), version).summary()
    return {str(key): str(summary.get(key)) for key in handle.items(summary.keySet()) if str(key).startswith(_OURS)}


def history(handle: TableHandle, stage: Stage) -> tuple[StageCommit, ...]:
    """Commits of this run on its branch, oldest first, with the files each added."""
    table = handle.load()
    found: list[StageCommit] = []
    for snapshot in reversed(list(own_snapshots(table, stage))):
        carried = json.loads(snapshot.summary().get(CARRIED) or "[]")
        found += [
            StageCommit(str(snapshot.snapshotId()), tuple(chunk_ids), token, rows=0) for token, chunk_ids in carried
        ]
        found += [] if carried else [_commit(handle, table, snapshot)]
    return tuple(found)


def has_commit(handle: TableHandle, stage: Stage, token: int) -> bool:
    """Whether a commit with that token is on the stage."""
    return any(each.summary().get(TOKEN) == str(token) for each in own_snapshots(handle.load(), stage))


def find_commit(handle: TableHandle, stage: Stage, token: int) -> StageCommit:
    """The newest commit with that token. Never the branch's head as such: it says nothing about who wrote it."""
    table = handle.load()
    for snapshot in own_snapshots(table, stage):
        if snapshot.summary().get(TOKEN) == str(token):
            return _commit(handle, table, snapshot)
    raise SparkFailed(
        f"the commit with token {token} is not on branch {stage.branch}", hint="run the same command again", token=token
    )


def own_snapshots(table: Any, stage: Stage) -> Iterator[Any]:
    """Those that this run wrote on its branch, newest first."""
    head = ref_of(table, stage.branch)
    if head is None:
        return
    for snapshot in snapshots_between(table, head, stage.base)[0]:
        if snapshot.summary().get(RUN) == stage.run_id:
            yield snapshot


def _commit(handle: TableHandle, table: Any, snapshot: Any) -> StageCommit:
    summary, specs = snapshot.summary(), Specs(table)
    added = handle.items(changes_of(handle, table, snapshot).addedDataFiles())
    told = summary.get(MERGED)
    merged = None if told is None else Merged(**json.loads(told))
    return StageCommit(
        version=str(snapshot.snapshotId()),
        chunk_ids=chunks_of(snapshot),
        token=int(summary.get(TOKEN)),
        rows=int(summary.get("added-records") or 0) if merged is None else merged.written,
        added=tuple(specs.ref(each) for each in added),
        merged=merged,
    )


def chunks_of(snapshot: Any) -> tuple[str, ...]:
    """The chunks that a commit of a run wrote; none for one that carried others over."""
    return tuple(json.loads(snapshot.summary().get(CHUNKS) or "[]"))
