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
    names = {*wanted.refs} | ({wanted.branch} if wanted.branch else set())
    if MAIN in names:
        raise Refused("main is the live table: it is never dropped")
    reach: Reach | None = None
    for attempt in retrying(REF_ATTEMPTS):
        with attempt:
            table = handle.load()
            metadata = table.operations().current()
            refs = _refs(handle, metadata)
            drop = names & refs.keys()
            versions = _versions(metadata, wanted.versions, drop, refs)
            if not drop and not versions:
                if reach is None or any(metadata.snapshot(int(each)) is not None for each in reach.versions):
                    return 0
                # An earlier attempt landed and only its answer was lost: the files are still to be deleted.
                reach.keep(metadata)
                break
            if reach is None or reach.versions != versions:
                reach = Reach(handle, table, versions)
            reach.keep(metadata)
            _commit(handle, table, metadata, drop, versions)
    return reach.delete(table.io()) if reach is not None else 0


def _refs(handle: TableHandle, metadata: Any) -> dict[str, str]:
    refs = metadata.refs()
    return {name: str(refs.get(name).snapshotId()) for name in handle.items(refs.keySet())}


def _versions(metadata: Any, wanted: tuple[str, ...], drop: set[str], refs: dict[str, str]) -> frozenset[str]:
    """Each branch to drop takes its own snapshots with it: left behind, they mislead a later expiry."""
    pinned = {version for name, version in refs.items() if name not in drop}
    versions = {version for version in wanted if metadata.snapshot(int(version)) is not None}
    for name in drop:
        if metadata.ref(name).isBranch():
            versions |= _only_on_branch(metadata, name, refs)
    return frozenset(versions - pinned)


def _only_on_branch(metadata: Any, branch: str, refs: dict[str, str]) -> set[str]:
    """From the branch's head back to the first snapshot that something else points at or descends from.

    Refs that are about to go count as well: the base tag ends the walk where the stage began, also when main's own
    chain no longer reaches the base.
    """
    reached: set[str] = set()
    for name, version in refs.items():
        if name != branch:
            reached |= _ancestors(metadata, version, reached)
    return _ancestors(metadata, refs[branch], reached)


def _ancestors(metadata: Any, start: str, known: set[str]) -> set[str]:
    """The snapshot and what it descends from, up to the first that is known already or that the metadata lacks."""
    found: set[str] = set()
    version: str | None = start
    while version is not None and version not in known:
        snapshot = metadata.snapshot(int(version))
        if snapshot is None:
            break
        found.add(version)
        version = parent_of(snapshot)
    return found


def _commit(handle: TableHandle, table: Any, metadata: Any, drop: set[str], versions: frozenset[str]) -> None:
    builder = handle.java("TableMetadata").buildFrom(metadata)
    for name in sorted(drop):
        builder = builder.removeRef(name)
    snapshots = handle.java_list()
    for version in sorted(versions):
        snapshots.add(metadata.snapshot(int(version)))
    table.operations().commit(metadata, builder.removeSnapshots(snapshots).build())
