"""The files of a change that only adds: found without listing the table that they are added to."""

from __future__ import annotations

from typing import Any

from backcast.errors import Refused
from backcast.model.table import Change
from backcast.spark.iceberg.handle import TableHandle, parent_of, snapshot_of
from backcast.targets.iceberg.commits import RUN, changes_of


def live_already(paths: list[str]) -> Refused:
    return Refused(f"{len(paths)} files to add are live already: their rows would double", file=min(paths))


def new_files(handle: TableHandle, table: Any, change: Change) -> list[Any] | None:
    """The files to add, each with its statistics, as the commits on their stage describe them.

    None when these commits are not there any more. Raises Refused when one of the files is live.
    """
    found: dict[str, Any] = {}
    version = change.add_from
    while version is not None and found.keys() != change.add:
        snapshot = table.snapshot(int(version))
        if snapshot is None or snapshot.summary().get(RUN) is None:
            return None
        for data_file in handle.items(changes_of(handle, table, snapshot).addedDataFiles()):
            if data_file.location() in change.add:
                found[data_file.location()] = data_file
        version = parent_of(snapshot)
    if found.keys() != change.add:
        return None
    there = _live(handle, table, change)
    if there:
        raise live_already(there)
    return [found[path] for path in sorted(found)]


def _live(handle: TableHandle, table: Any, change: Change) -> list[str]:
    """Those of the files that the head has. Its paths stay inside the JVM: each through the gateway is a round trip."""
    if change.head is None or not change.add:
        return []
    paths = handle.java_set()
    add_all = handle.java("relocated.com.google.common.collect.Iterables").addAll
    for manifest in handle.items(snapshot_of(table, change.head).dataManifests(table.io())):
        listed = handle.java("ManifestFiles").readPaths(manifest, table.io(), table.specs())
        add_all(paths, listed)
        listed.close()
    return [path for path in sorted(change.add) if paths.contains(path)]
