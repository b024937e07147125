"""Letting go of a run: refs dropped and snapshots forgotten in one commit, then the files that only those reached.

Iceberg's own `expireSnapshots` also expires by age and by each ref's own retention, and its cleaning follows removed
files, which an undo may have brought back. So exactly the given snapshots are taken out of exactly the metadata that
was looked at, by compare-and-set, and only then are files deleted. A crash in between leaves files that no snapshot
reaches: `remove_orphan_files` takes them; forgetting again finds nothing to do and returns 0.
"""

from __future__ import annotations

from typing import Any

from backcast.errors import Refused
from backcast.model.table import Forget
from backcast.spark.iceberg.handle import MAIN, TableHandle, parent_of
from backcast.targets.iceberg.reach import Reach
from backcast.targets.iceberg.retries import REF_ATTEMPTS, retrying


def forget(handle: TableHandle, wanted: Forget) -> int:
    """The number of files deleted. Never forgets what main or a ref that stays points at."""
    if MAIN in (*wanted.refs, wanted.branch):
        raise Refused("main is the live table: it is never dropped")
    reach: Reach | None = None
    for attempt in retrying(REF_ATTEMPTS):
        with attempt:
            table = handle.load()
            metadata = table.operations().current()
            refs = _refs(handle, metadata)
            drop = [name for name in (*wanted.refs, wanted.branch) if name in refs]
            versions = _versions(metadata, wanted, refs)
            if not drop and not versions:
                return 0
            if reach is None or reach.versions != versions:
                reach = Reach(handle, table, versions)
            reach.keep(metadata)
            _commit(handle, table, metadata, drop, versions)
    return reach.delete(table.io()) if reach is not None else 0


def _refs(handle: TableHandle, metadata: Any) -> dict[str, str]:
    refs = metadata.refs()
    return {name: str(refs.get(name).snapshotId()) for name in handle.items(refs.keySet())}


def _versions(metadata: Any, wanted: Forget, refs: dict[str, str]) -> frozenset[str]:
    dropped = {*wanted.refs, wanted.branch}
    pinned = {version for name, version in refs.items() if name not in dropped}
    versions = {version for version in wanted.versions if metadata.snapshot(int(version)) is not None}
    if wanted.branch in refs:
        versions |= _only_on_branch(metadata, wanted.branch, refs)
    return frozenset(versions - pinned)


def _only_on_branch(metadata: Any, branch: str, refs: dict[str, str]) -> set[str]:
    """From the branch's head back to the first snapshot that something else points at or descends from.

    Refs that are about to go count as well: the base tag ends the walk where the stage began, also when main's own
    chain no longer reaches the base.
    """
    others = {version for name, version in refs.items() if name != branch}
    reached = set().union(*(_ancestors(metadata, version) for version in others)) if others else set()
    found: set[str] = set()
    for version in _ancestors(metadata, refs[branch]):
        if version in reached:
            break
        found.add(version)
    return found


def _ancestors(metadata: Any, start: str) -> list[str]:
    """The snapshot and what it descends from, newest first, as far as the metadata knows."""
    found: list[str] = []
    version: str | None = start
    while version is not None:
        snapshot = metadata.snapshot(int(version))
        if snapshot is None:
            break
        found.append(version)
        version = parent_of(snapshot)
    return found


def _commit(handle: TableHandle, table: Any, metadata: Any, drop: list[str], versions: frozenset[str]) -> None:
    builder = handle.java("TableMetadata").buildFrom(metadata)
    for name in drop:
        builder = builder.removeRef(name)
    snapshots = handle.java_list()
    for version in sorted(versions):
        snapshots.add(metadata.snapshot(int(version)))
    table.operations().commit(metadata, builder.removeSnapshots(snapshots).build())
