"""The net change of a stage: its commits folded into files added to and removed from the base."""

from __future__ import annotations

from typing import Any

from backcast.errors import Refused
from backcast.model.scope import Predicate
from backcast.model.table import NetChange, Stage
from backcast.spark.delta.bounds import FileBounds
from backcast.spark.delta.commit import read_commit
from backcast.spark.delta.handle import DeltaHandle
from backcast.targets.delta.commits import stage_commits


def net_change(handle: DeltaHandle, stage: Stage, staged: str, scope: Predicate) -> NetChange:
    """Relative to the files that the stage began with, never to a newer state of the table."""
    at = handle.at(staged)
    first = read_commit(handle.jvm, at.log, 0)
    if first is None or at.branch != stage.branch:
        raise Refused(f"version {staged} does not descend from the base {stage.base}", hint="stage the run again")
    base = {at.root.canonical(add["path"]): add for add in first.adds}
    added: dict[str, dict[str, Any]] = {}
    removed: dict[str, dict[str, Any]] = {}
    superseded: list[str] = []
    for commit in stage_commits(handle, at):
        for each in commit.removes:
            path = at.root.canonical(each["path"])
            if added.pop(path, None) is None:
                removed[path] = base[path]
            else:
                superseded.append(path)
        added |= {at.root.canonical(each["path"]): each for each in commit.adds}
    bounds = FileBounds(at.layout, scope)
    return NetChange(
        base=stage.base,
        staged=staged,
        added=tuple(at.data_file(each).ref for _, each in sorted(added.items())),
        removed=tuple(at.data_file(each).ref for _, each in sorted(removed.items())),
        outside=tuple(at.data_file(each).ref for _, each in sorted(added.items()) if not bounds.holds_all(each)),
        superseded=tuple(superseded),
    )
