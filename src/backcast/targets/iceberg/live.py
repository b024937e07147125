"""How the live table moved since the base: compared by files, explained by commits."""

from __future__ import annotations

from typing import Any

from backcast.model.movement import Walk
from backcast.model.scope import Predicate
from backcast.model.table import FileList, LiveCommit, Movement
from backcast.spark.iceberg.expressions import to_expression
from backcast.spark.iceberg.facts import instant
from backcast.spark.iceberg.files import PlannedFile, plan_files
from backcast.spark.iceberg.handle import TableHandle, head_of, parent_of
from backcast.targets.iceberg.bounds import ScopeBounds
from backcast.targets.iceberg.commits import changes_of

_REWRITES = "replace"
"""Iceberg's word for a commit that rewrote files without changing rows."""


def movement(handle: TableHandle, base: str | None, scope: Predicate) -> Movement:
    """Differences in data files, and in the delete files that apply to them, between base and head of main."""
    table = handle.load()
    head = head_of(table)
    expression = to_expression(handle, scope, handle.types(table))
    now = _by_path(handle, table, head, expression)
    then = now if head == base else _by_path(handle, table, base, expression)
    masked = {path for path in now.keys() & then.keys() if now[path].deletes != then[path].deletes}
    added = (now.keys() - then.keys()) | masked
    removed = (then.keys() - now.keys()) | masked
    walk = Walk(base=frozenset(then), extra=set(now.keys() - then.keys()), lacking=set(then.keys() - now.keys()))
    if added or removed:
        _explain(handle, table, walk, base, ScopeBounds(handle, table, scope))
    return Movement(
        head=head,
        files=FileList(head, tuple(each.ref for each in now.values())),
        added=tuple(now[path].ref for path in sorted(added)),
        removed=tuple(then[path].ref for path in sorted(removed)),
        only_compaction=bool(added or removed) and not masked and walk.only_rewrites,
        commits=tuple(reversed(walk.commits)),
    )


def _by_path(handle: TableHandle, table: Any, version: str | None, expression: Any) -> dict[str, PlannedFile]:
    return {each.ref.path: each for each in plan_files(handle, table, version, expression)}


def _explain(handle: TableHandle, table: Any, walk: Walk, base: str | None, bounds: ScopeBounds) -> None:
    version = head_of(table)
    # Files whose deletes changed leave no trace in the sets: then every commit since the base is looked at.
    whole_way = walk.arrived
    while version != base and (whole_way or not walk.arrived):
        snapshot = table.snapshot(int(version)) if version is not None else None
        if snapshot is None:
            walk.only_rewrites = False
            return
        _take_back(handle, table, walk, snapshot, bounds)
        version = parent_of(snapshot)
    if not walk.arrived:
        walk.only_rewrites = False


def _take_back(handle: TableHandle, table: Any, walk: Walk, snapshot: Any, bounds: ScopeBounds) -> None:
    changes = changes_of(handle, table, snapshot)
    added = _in_scope(handle, changes.addedDataFiles(), bounds)
    removed = _in_scope(handle, changes.removedDataFiles(), bounds)
    masks = _in_scope(handle, changes.addedDeleteFiles(), bounds)
    if not added and not removed and not masks:
        return
    operation = snapshot.operation() or ""
    commit = LiveCommit(
        version=str(snapshot.snapshotId()),
        operation=operation,
        at=instant(snapshot.timestampMillis()),
        added=len(added),
        removed=len(removed),
    )
    walk.take_back(commit, added, removed, rewrite=operation == _REWRITES)


def _in_scope(handle: TableHandle, files: Any, bounds: ScopeBounds) -> set[str]:
    return {each.location() for each in handle.items(files) if bounds.may_hold_any(each)}
