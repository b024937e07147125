"""Files that only some snapshots reach."""

from __future__ import annotations

from typing import Any

from backcast.spark.iceberg.handle import TableHandle, snapshot_of

_DELETES = "DELETES"


class Reach:
    """Manifest lists, manifests and data files of the given snapshots, minus what any other snapshot reaches.

    Sets of paths stay inside the JVM: a table can have millions, and each path through the gateway is a round trip.
    """

    def __init__(self, handle: TableHandle, table: Any, versions: frozenset[str]) -> None:
        self.versions = versions
        self._handle, self._table = handle, table
        self._lists: set[str] = set()
        self._manifests: dict[str, Any] = {}
        self._kept_manifests: set[str] = set()
        self._kept_snapshots: set[str] = set()
        self._files: Any = None
        for version in versions:
            snapshot = snapshot_of(table, version)
            if snapshot.manifestListLocation():
                self._lists.add(snapshot.manifestListLocation())
            self._manifests.update(self._manifests_of(snapshot))

    def keep(self, metadata: Any) -> None:
        """Take away what the other snapshots of this metadata reach. May be called again when more have come."""
        fresh: dict[str, Any] = {}
        for snapshot in self._handle.items(metadata.snapshots()):
            version = str(snapshot.snapshotId())
            if version not in self.versions and version not in self._kept_snapshots:
                self._kept_snapshots.add(version)
                fresh.update(self._manifests_of(snapshot))
        for path in fresh.keys() & self._manifests.keys():
            del self._manifests[path]
        if self._files is None:
            self._files = self._paths(self._manifests)
        for path in sorted(fresh.keys() - self._kept_manifests):
            self._kept_manifests.add(path)
            if not self._files.isEmpty():
                self._files.removeAll(self._paths({path: fresh[path]}))

    def delete(self, io: Any) -> int:
        """Delete data files first: a manifest left behind by a crash still names what it led to."""
        paths = self._handle.java_list()
        paths.addAll(self._files)
        for path in (*sorted(self._manifests), *sorted(self._lists)):
            paths.add(path)
        self._handle.java("CatalogUtil").deleteFiles(io, paths, "forgotten", True)
        return int(paths.size())

    def _manifests_of(self, snapshot: Any) -> dict[str, Any]:
        return {each.path(): each for each in self._handle.items(snapshot.allManifests(self._table.io()))}

    def _paths(self, manifests: dict[str, Any]) -> Any:
        """Paths of the live entries, data and delete files alike."""
        found, table = self._handle.java_set(), self._table
        add_all = self._handle.java("relocated.com.google.common.collect.Iterables").addAll
        for manifest in manifests.values():
            if manifest.content().name() == _DELETES:
                self._add_delete_files(found, manifest)
                continue
            paths = self._handle.java("ManifestFiles").readPaths(manifest, table.io(), table.specs())
            add_all(found, paths)
            paths.close()
        return found

    def _add_delete_files(self, found: Any, manifest: Any) -> None:
        """Iceberg has a reader of its own for their manifests, and nothing that reads paths alone."""
        files = self._handle.java("ManifestFiles").readDeleteManifest(manifest, self._table.io(), self._table.specs())
        for each in self._handle.items(files):
            found.add(each.location())
        files.close()
