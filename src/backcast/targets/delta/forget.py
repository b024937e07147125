"""Letting go of stages: VACUUM never visits their folder, so its work is done here, with the table's retention.

A published file lives in the folder of its stage. It may go once the live table no longer names it and has not done so
for as long as the table keeps removed files.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from backcast.errors import Refused
from backcast.model.table import Forget
from backcast.spark.delta.handle import STAGES, DeltaHandle

_LOG = "_delta_log"


def forget(handle: DeltaHandle, wanted: Forget) -> int:
    """The number of files deleted. The stage's log goes last: until then the folder tells what it is."""
    names = {*wanted.refs} | ({wanted.branch} if wanted.branch else set())
    if not all(names) or any("/" in name or name.startswith(".") for name in names):
        raise Refused("a stage's folder has a plain name", names=sorted(names))
    present = [name for name in sorted(names) if _exists(handle, _folder(handle, name))]
    if not present:
        return 0
    kept = _needed(handle)
    return sum(_clear(handle, _folder(handle, name), kept) for name in present)


def sweep(handle: DeltaHandle) -> int:
    """Files of forgotten stages that neither the table nor its retention needs; young ones are left alone.

    A folder that still has a log, be it an empty one, belongs to a run, of whatever project, and is not looked into:
    its stage may be being opened right now.
    """
    folder = f"{handle.root.path}/{STAGES}"
    if not _exists(handle, folder):
        return 0
    listed = handle.jvm.file_system(handle.log).listStatus(handle.jvm.path(folder))
    places = [each.getPath().toString() for each in listed if each.isDirectory()]
    left = [place for place in places if not _exists(handle, f"{place}/{_LOG}")]
    if not left:
        return 0
    young = int(time.time() * 1000) - handle.jvm.retention_millis(handle.at().snapshot)
    kept = _needed(handle)
    return sum(_clear(handle, place, kept, before=young) for place in left)


def _folder(handle: DeltaHandle, name: str) -> str:
    return f"{handle.root.path}/{STAGES}/{name}"


def _exists(handle: DeltaHandle, path: str) -> bool:
    return bool(handle.jvm.file_system(handle.log).exists(handle.jvm.path(path)))


def _needed(handle: DeltaHandle) -> frozenset[str]:
    """Files under the stages' folder that the live table has, or removed not long enough ago."""
    head = handle.at()
    before = int(time.time() * 1000) - handle.jvm.retention_millis(head.snapshot)
    tombstones = f"deletionTimestamp IS NULL OR deletionTimestamp >= {before}"
    raw = [*_paths(handle, head.snapshot.allFiles(), "true"), *_paths(handle, head.snapshot.tombstones(), tombstones)]
    return frozenset(head.root.canonical(each) for each in raw)


def _paths(handle: DeltaHandle, dataset: Any, condition: str) -> list[str]:
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F

    rows = DataFrame(dataset.toDF(), handle.spark).where(condition).select("path")
    return [row[0] for row in rows.where(F.col("path").contains(f"{STAGES}/")).collect()]


def _clear(handle: DeltaHandle, folder: str, kept: frozenset[str], before: int | None = None) -> int:
    files, deleted, left = handle.jvm.file_system(handle.log), 0, 0
    for status in list(_walk(handle, files, folder)):
        path = status.getPath()
        if path.toString() in kept or (before is not None and status.getModificationTime() >= before):
            left += 1
        elif files.delete(path, False):
            deleted += 1
    if not left:
        files.delete(handle.jvm.path(folder), True)
    elif before is None:
        files.delete(handle.jvm.path(f"{folder}/{_LOG}"), True)
    handle.jvm.forget_log(folder)
    return deleted


def _walk(handle: DeltaHandle, files: Any, folder: str) -> Iterator[Any]:
    """Data files below the folder, without the log and without Hadoop's own checksums."""
    for status in files.listStatus(handle.jvm.path(folder)):
        name = status.getPath().getName()
        if status.isDirectory():
            if name != _LOG:
                yield from _walk(handle, files, status.getPath().toString())
        elif not name.endswith(".crc"):
            yield status
