"""A Delta table of three days, and the shortest way to publish and undo one of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from backcast.model.column import TimeColumn, TimeKind
from backcast.model.scope import Predicate, TimeClause
from backcast.model.stage import publish_fence, stage_of, undo_fence
from backcast.model.table import Change, FileList, NetChange, StageWrite
from backcast.targets.delta.target import DeltaTarget

COLUMNS = "id BIGINT, day DATE, v DOUBLE"
ROWS = "SELECT id, date_add(DATE'2026-01-01', CAST(id % 3 AS INT)), CAST(id AS DOUBLE) FROM range(12)"
SCOPE = Predicate(
    clauses=(TimeClause(time=TimeColumn(column="day", kind=TimeKind.DATE), ranges=(("2026-01-02", "2026-01-03"),)),)
)
Create = Callable[..., DeltaTarget]


def rows(target: DeltaTarget) -> Counter[tuple[object, ...]]:
    found = Counter(tuple(row) for row in target.read(target.facts().version, Predicate()).collect())
    assert found
    return found


def staged(target: DeltaTarget, run: str = "r1", *, exact: bool = False) -> NetChange:
    """The scope's values times ten, on a stage."""
    stage = stage_of(run, target.facts().version)
    target.open_stage(stage, SCOPE)
    new = target.read(stage.base, SCOPE).selectExpr("id", "day", "v * 10 AS v")
    commit = target.write(stage, StageWrite(("c1",), 1, SCOPE, exact), new)
    assert commit.rows == 4
    return target.net_change(stage, commit.version, SCOPE)


def publish(target: DeltaTarget, net: NetChange, run: str = "r1") -> Change:
    change = Change(
        fence=publish_fence(run, 1),
        head=target.movement(net.base, SCOPE).head,
        scope=SCOPE,
        add_from=net.staged,
        add=frozenset(file.path for file in net.added),
        remove=frozenset(file.path for file in net.removed),
        guard_rows=True,
        properties={"backcast.change": "publish"},
    )
    target.commit(change)
    return change


def undo(target: DeltaTarget, net: NetChange, change: Change, run: str = "r1") -> None:
    target.commit(
        Change(
            fence=undo_fence(run, 1),
            head=target.facts().version,
            scope=SCOPE,
            add_from=net.base,
            add=change.remove,
            remove=change.add,
            guard_rows=False,
            properties={"backcast.change": "undo"},
        )
    )


def files_in_scope(target: DeltaTarget) -> FileList:
    return target.files(target.facts().version, SCOPE)
