"""How the live table moved since the base: compared by files, explained by commits."""

from __future__ import annotations

from backcast.model.movement import Walk
from backcast.model.scope import Predicate
from backcast.model.table import FileList, LiveCommit, Movement
from backcast.spark.delta.bounds import FileBounds
from backcast.spark.delta.commit import read_commit
from backcast.spark.delta.facts import instant
from backcast.spark.delta.handle import DeltaHandle, Version


def movement(handle: DeltaHandle, base: str | None, scope: Predicate) -> Movement:
    """Differences in data files, and in the deletion vectors that apply to them, between base and head."""
    head = handle.at()
    files = handle.scope_files(scope)
    then = files.at(head if head.name == base else handle.at(base))
    now = files.at(head)
    masked = {path for path in now.keys() & then.keys() if now[path].vector != then[path].vector}
    added = (now.keys() - then.keys()) | masked
    removed = (then.keys() - now.keys()) | masked
    walk = Walk(base=frozenset(then), extra=set(now.keys() - then.keys()), lacking=set(then.keys() - now.keys()))
    if added or removed:
        _explain(handle, head, walk, int(base or 0), FileBounds(head.layout, scope))
    return Movement(
        head=head.name,
        files=FileList(head.name, tuple(each.ref for each in now.values())),
        added=tuple(now[path].ref for path in sorted(added)),
        removed=tuple(then[path].ref for path in sorted(removed)),
        only_compaction=bool(added or removed) and not masked and walk.only_rewrites,
        commits=tuple(reversed(walk.commits)),
    )


def _explain(handle: DeltaHandle, head: Version, walk: Walk, base: int, bounds: FileBounds) -> None:
    # Files whose deletion vectors changed leave no trace in the sets: then every commit since the base is looked at.
    whole_way, number = walk.arrived, head.number
    while number > base and (whole_way or not walk.arrived):
        commit = read_commit(handle.jvm, head.log, number)
        if commit is None:
            walk.only_rewrites = False
            return
        number -= 1
        added = {head.root.canonical(each["path"]) for each in commit.adds if bounds.may_hold_any(each)}
        removed = {head.root.canonical(each["path"]) for each in commit.removes if bounds.may_hold_any(each)}
        if not added and not removed:
            continue
        live = LiveCommit(
            version=str(commit.version),
            operation=str(commit.info.get("operation", "unknown")).lower(),
            at=instant(int(commit.info.get("timestamp") or 0)),
            added=len(added),
            removed=len(removed),
        )
        walk.take_back(live, added, removed, rewrite=not commit.changes_data)
    if not walk.arrived:
        walk.only_rewrites = False
