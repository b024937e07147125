"""Letting go of stages: VACUUM never visits their folder, so its work is done here, with the table's retention.

A published file lives in the folder of its stage. It may go once the live table no longer names it and has not done so
for as long as the table keeps removed files.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backcast.errors import Refused
from backcast.model.table import Forget
from backcast.spark.delta.handle import STAGES, DeltaHandle
from backcast.spark.delta.storage import Entry, Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LOG = "_delta_log"


def forget(handle: DeltaHandle, wanted: Forget) -> int:
    """The number of files deleted. The stage's log goes last: until then the folder tells what it is."""
    names = {*wanted.refs} | ({wanted.branch} if wanted.branch else set())
    if not all(names) or any("/" in name or name.startswith(".") for name in names):
        raise Refused("a stage's folder has a plain name", names=sorted(names))
    storage = handle.jvm.storage(handle.log)
    present = [name for name in sorted(names) if storage.exists(_folder(handle, name))]
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
    storage = handle.jvm.storage(handle.log)
    if not storage.exists(folder):
        return 0
    places = [each.path for each in storage.entries(folder) if each.is_folder]
    left = [place for place in places if not storage.exists(f"{place}/{_LOG}")]
    if not left:
        return 0
    young = int(time.time() * 1000) - handle.jvm.retention_millis(handle.at().snapshot)
    kept = _needed(handle)
    return sum(_clear(handle, place, kept, before=young) for place in left)


def _folder(handle: DeltaHandle, name: str) -> str:
    return f"{handle.root.path}/{STAGES}/{name}"


def _needed(handle: DeltaHandle) -> frozenset[str]:
    """Files under the stages' folder that the live table has, or removed not long enough ago."""
    head = handle.at()
    before = int(time.time() * 1000) - handle.jvm.retention_millis(head.snapshot)
    tombstones = f"deletionTimestamp IS NULL OR deletionTimestamp >= {before}"
    raw = [*_paths(handle.jvm.files(head.snapshot)), *_paths(handle.jvm.removed(head.snapshot).where(tombstones))]
    return frozenset(head.root.canonical(each) for each in raw)


def _paths(actions: DataFrame) -> list[str]:
    from pyspark.sql import functions as F

    return [row[0] for row in actions.select("path").where(F.col("path").contains(f"{STAGES}/")).collect()]


def _clear(handle: DeltaHandle, folder: str, kept: frozenset[str], before: int | None = None) -> int:
    storage, deleted, left = handle.jvm.storage(handle.log), 0, 0
    for file in list(_walk(storage, folder)):
        if file.path in kept or (before is not None and file.modified >= before):
            left += 1
        elif storage.delete(file.path):
            deleted += 1
    if not left:
        storage.delete(folder)
    elif before is None:
        storage.delete(f"{folder}/{_LOG}")
    handle.jvm.forget_log(folder)
    return deleted


def _walk(storage: Storage, folder: str) -> Iterator[Entry]:
    """Data files below the folder, without the log and without Hadoop's own checksums."""
    for entry in storage.entries(folder):
        if entry.is_folder:
            if entry.name != _LOG:
                yield from _walk(storage, entry.path)
        elif not entry.name.endswith(".crc"):
            yield entry
