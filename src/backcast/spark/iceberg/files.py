"""Data files as the table's metadata describes them. No data is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from backcast.errors import Drifted
from backcast.model.table import FileRef
from backcast.spark.iceberg.handle import snapshot_of

if TYPE_CHECKING:
    from backcast.spark.iceberg.handle import TableHandle


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A data file of a snapshot, with the delete files that apply to it."""

    ref: FileRef
    data_file: Any
    deletes: frozenset[str]


class Specs:
    """The table's partition specs by id, fetched once: a call through the gateway for each file adds up."""

    def __init__(self, table: Any) -> None:
        self._specs = table.specs()
        self._known: dict[int, tuple[Any, bool]] = {}

    def ref(self, data_file: Any, deletes: int = 0) -> FileRef:
        spec, partitioned = self.get(data_file.specId())
        partition = spec.partitionToPath(data_file.partition()) if partitioned else ""
        return FileRef(data_file.location(), partition, data_file.recordCount(), data_file.fileSizeInBytes(), deletes)

    def get(self, spec_id: int) -> tuple[Any, bool]:
        """The spec, and whether it partitions at all."""
        if spec_id not in self._known:
            spec = self._specs.get(spec_id)
            self._known[spec_id] = (spec, spec.isPartitioned())
        return self._known[spec_id]


def plan_files(handle: TableHandle, table: Any, version: str | None, expression: Any) -> Iterator[PlannedFile]:
    """The files of that version that can hold matching rows, by partition and by column bounds."""
    if version is None:
        return
    specs = Specs(table)
    has_deletes = snapshot_of(table, version).summary().get("total-delete-files") != "0"
    for task in _tasks(handle, table, version, expression, stats=False):
        paths = frozenset(each.location() for each in handle.items(task.deletes())) if has_deletes else frozenset()
        data_file = task.file()
        yield PlannedFile(specs.ref(data_file, len(paths)), data_file, paths)


def data_files(handle: TableHandle, table: Any, version: str, expression: Any) -> dict[str, Any]:
    """Path -> DataFile with column statistics, ready to be added to or removed from the table."""
    files = (task.file() for task in _tasks(handle, table, version, expression, stats=True))
    return {data_file.location(): data_file for data_file in files}


def stage_tasks(handle: TableHandle, table: Any, version: str, paths: frozenset[str], expression: Any) -> str:
    """Hand the reading of exactly these files to Spark; the returned id is for its option `scan-task-set-id`."""
    found: dict[str, Any] = {}
    for attempt in (expression, handle.java("expressions.Expressions").alwaysTrue()):
        for task in _tasks(handle, table, version, attempt, stats=False):
            path = task.file().location()
            if path in paths:
                found[path] = task
        if found.keys() == paths:
            break
    else:
        raise Drifted(f"{len(paths - found.keys())} files are not in version {version}", file=min(paths - found.keys()))
    tasks = handle.java_list()
    for task in found.values():
        tasks.add(task)
    set_id = uuid4().hex
    handle.java("spark.ScanTaskSetManager").get().stageTasks(table, set_id, tasks)
    return set_id


def _tasks(handle: TableHandle, table: Any, version: str, expression: Any, *, stats: bool) -> Iterator[Any]:
    snapshot_of(table, version)
    scan = table.newScan().useSnapshot(int(version)).filter(expression).ignoreResiduals()
    tasks = (scan.includeColumnStats() if stats else scan).planFiles()
    try:
        yield from handle.items(tasks)
    finally:
        tasks.close()
