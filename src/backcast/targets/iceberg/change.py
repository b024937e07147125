"""The net change of a stage: its commits folded into files added to and removed from the base."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from backcast.errors import Refused
from backcast.model.scope import Predicate
from backcast.model.table import NetChange, Stage
from backcast.spark.iceberg.expressions import to_expression
from backcast.spark.iceberg.files import Specs, data_files
from backcast.spark.iceberg.handle import TableHandle, snapshot_of
from backcast.targets.iceberg.bounds import ScopeBounds
from backcast.targets.iceberg.commits import changes_of, snapshots_between


@dataclass(slots=True)
class _Fold:
    """Files by path, after the commits seen so far."""

    added: dict[str, Any] = field(default_factory=dict)
    removed: dict[str, Any] = field(default_factory=dict)
    superseded: list[str] = field(default_factory=list)

    def add(self, path: str, data_file: Any) -> None:
        if self.removed.pop(path, None) is None:
            self.added[path] = data_file

    def remove(self, path: str, data_file: Any) -> None:
        if self.added.pop(path, None) is None:
            self.removed[path] = data_file
        else:
            self.superseded.append(path)


def net_change(handle: TableHandle, stage: Stage, staged: str, scope: Predicate) -> NetChange:
    """Relative to the stage's own base, never to a newer one: that would take every live file since for removed."""
    table = handle.load()
    snapshot_of(table, staged)
    snapshots, whole = snapshots_between(table, staged, stage.base)
    if whole:
        fold = _fold(handle, table, snapshots)
    elif snapshots and snapshots[-1].parentId() is not None:
        fold = _compare(handle, table, stage.base, staged)
    else:
        raise Refused(
            f"version {staged} does not descend from the base {stage.base}", hint="stage the run again", staged=staged
        )
    specs, bounds = Specs(table), ScopeBounds(handle, table, scope)
    added = {path: specs.ref(each) for path, each in sorted(fold.added.items())}
    return NetChange(
        base=stage.base,
        staged=staged,
        added=tuple(added.values()),
        removed=tuple(specs.ref(each) for _, each in sorted(fold.removed.items())),
        outside=tuple(ref for path, ref in added.items() if not bounds.holds_all(fold.added[path])),
        superseded=tuple(fold.superseded),
    )


def _fold(handle: TableHandle, table: Any, newest_first: list[Any]) -> _Fold:
    fold = _Fold()
    for snapshot in reversed(newest_first):
        changes = changes_of(handle, table, snapshot)
        if any(True for _ in handle.items(changes.addedDeleteFiles())):
            _refuse_deletes(snapshot)
        for data_file in handle.items(changes.removedDataFiles()):
            fold.remove(data_file.location(), data_file)
        for data_file in handle.items(changes.addedDataFiles()):
            fold.add(data_file.location(), data_file)
    return fold


def _compare(handle: TableHandle, table: Any, base: str | None, staged: str) -> _Fold:
    """Expiry keeps a branch's head but not what lies behind it: then all files of both ends are compared."""
    deletes = [str(_delete_files(table, version)) for version in (base, staged) if version is not None]
    if len(set(deletes)) > 1:
        _refuse_deletes(snapshot_of(table, staged))
    everything = to_expression(handle, Predicate(), {})
    before = data_files(handle, table, base, everything) if base is not None else {}
    after = data_files(handle, table, staged, everything)
    return _Fold(
        added={path: each for path, each in after.items() if path not in before},
        removed={path: each for path, each in before.items() if path not in after},
    )


def _delete_files(table: Any, version: str) -> str:
    return snapshot_of(table, version).summary().get("total-delete-files") or "0"


def _refuse_deletes(snapshot: Any) -> None:
    raise Refused(
        "the stage holds delete files: publishing it would leave them behind",
        hint="set the table's write.delete.mode to copy-on-write and stage the run again",
        version=str(snapshot.snapshotId()),
    )
