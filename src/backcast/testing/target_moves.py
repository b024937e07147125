"""The shortest possible stage, publish and undo, on the port alone: what the flow does without its store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from backcast.model.column import TimeColumn, TimeKind
from backcast.model.scope import Predicate, TimeClause, ValueClause
from backcast.model.stage import stage_of
from backcast.model.table import Change, Merging, Movement, NetChange, PublishMode, Stage, StageCommit, StageWrite
from backcast.testing.target_lab import FIRST, Row, date_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from backcast.ports import Target

DAY = TimeColumn(column="day", kind=TimeKind.DATE)
ALL = Predicate()
MERGING = Merging(key=("id",), version="v", deleted="gone")
"""How `merge` tells rows apart: the greater v is the newer."""

FACTOR = 10.0
"""What `restated` multiplies v by."""


def days(first: int, last: int) -> Predicate:
    """Days by their numbers, both included."""
    return Predicate(
        clauses=(TimeClause(time=DAY, ranges=((date_of(first).isoformat(), date_of(last + 1).isoformat()),)),)
    )


def instants(column: str, start: str, end: str) -> Predicate:
    """A half-open range of a timestamp column; bounds in UTC."""
    return Predicate(clauses=(TimeClause(time=TimeColumn(column=column), ranges=((start, end),)),))


def where(column: str, *values: str) -> Predicate:
    return Predicate(clauses=(ValueClause(column=column, values=values),))


def frame(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    """Rows as (id, number of the day, v), in one partition."""
    values = [(number, date_of(day), v) for number, day, v in rows]
    return spark.createDataFrame(values, "id bigint, day date, v double").coalesce(1)


def rows_of(rows: DataFrame) -> list[Row]:
    """The opposite of `frame`, in order."""
    return sorted((row.id, (row.day - FIRST).days + 1, row.v) for row in rows.select("id", "day", "v").collect())


def open_stage(target: Target, run: str = "r1", scope: Predicate | None = ALL) -> Stage:
    stage = stage_of(run, target.facts().version)
    target.open_stage(stage, scope)
    return stage


def write(
    target: Target,
    stage: Stage,
    scope: Predicate,
    rows: DataFrame,
    *,
    token: int = 1,
    exact: bool = False,
    chunks: tuple[str, ...] = ("c1",),
) -> StageCommit:
    return target.write(stage, StageWrite(chunks, token, scope, exact), rows)


def append(
    target: Target, stage: Stage, rows: DataFrame, *, token: int = 1, chunks: tuple[str, ...] = ("c1",)
) -> StageCommit:
    return target.write(stage, StageWrite(chunks, token, ALL, exact=False, mode=PublishMode.APPEND), rows)


def merge(
    target: Target,
    stage: Stage,
    rows: DataFrame,
    *,
    gone: tuple[int, ...] = (),
    token: int = 1,
    scope: Predicate = ALL,
    chunks: tuple[str, ...] = ("c1",),
    merging: Merging = MERGING,
) -> StageCommit:
    """Merge by id; the rows with an id among `gone` are deletes."""
    from pyspark.sql import functions as F

    write = StageWrite(chunks, token, scope, exact=False, mode=PublishMode.MERGE, merging=merging)
    return target.write(stage, write, rows.withColumn("gone", F.col("id").isin(*gone)))


def beside(target: Target, net: NetChange, *, fence: str = "pub-1") -> Change:
    """Exactly the net change on today's head, whatever else is there and comes."""
    return Change(
        fence=fence,
        head=target.facts().version,
        scope=ALL,
        add_from=net.staged,
        add=frozenset(each.path for each in net.added),
        remove=frozenset(each.path for each in net.removed),
        guard_rows=False,
        properties={"backcast.change": "publish", "backcast.fence": fence},
    )


def restated(target: Target, scope: Predicate, run: str = "r1", *, exact: bool = False) -> tuple[Stage, NetChange]:
    """A stage that multiplies v in the scope, and its net change."""
    stage = open_stage(target, run, ALL if exact else scope)
    rows = target.read(stage.base, scope).selectExpr("id", "day", f"v * {FACTOR} AS v").coalesce(1)
    commit = write(target, stage, scope, rows, exact=exact)
    return stage, target.net_change(stage, commit.version, scope)


def day_of(net: NetChange, day: int) -> NetChange:
    """The part of a net change that lies on one day."""
    partition = f"day={date_of(day).isoformat()}"
    added = tuple(each for each in net.added if each.partition == partition)
    return replace(net, added=added, removed=tuple(each for each in net.removed if each.partition == partition))


def multiplied(rows: Iterable[Row], first: int, last: int) -> list[Row]:
    """The rows as `restated` leaves them once these days are published."""
    return sorted((number, day, v * FACTOR if first <= day <= last else v) for number, day, v in rows)


def publication(
    net: NetChange, moved: Movement, scope: Predicate, *, fence: str = "pub-1", keep: bool = False
) -> Change:
    removed = frozenset(each.path for each in net.removed)
    return Change(
        fence=fence,
        head=moved.head,
        scope=scope,
        add_from=net.staged,
        add=frozenset(each.path for each in net.added),
        remove=moved.files.paths if moved.only_compaction else removed,
        guard_rows=not keep,
        properties={"backcast.change": "publish", "backcast.fence": fence},
    )


def decided(target: Target, net: NetChange, scope: Predicate, *, fence: str = "pub-1", keep: bool = False) -> Change:
    """The change as it would be committed on today's head."""
    return publication(net, target.movement(net.base, scope), scope, fence=fence, keep=keep)


def publish(target: Target, net: NetChange, scope: Predicate, *, fence: str = "pub-1", keep: bool = False) -> str:
    """Publish the net change on today's head, whatever moved there."""
    return target.commit(decided(target, net, scope, fence=fence, keep=keep))


def inverse(target: Target, net: NetChange, scope: Predicate, *, fence: str = "undo-1", of: str = "pub-1") -> Change:
    """What takes the net change back, on today's head. `of` is the fence it was published under."""
    add, remove = (frozenset(each.path for each in files) for files in (net.removed, net.added))
    version = target.probe(of)
    rewrite = target.rewritten(version) if version is not None else None
    if rewrite is not None:
        add = rewrite.removed & target.files(net.base, scope).paths
        remove = rewrite.added & target.files(version, scope).paths
    return Change(
        fence=fence,
        head=target.facts().version,
        scope=scope,
        add_from=net.base,
        add=add,
        remove=remove,
        guard_rows=False,
        properties={"backcast.change": "undo"},
    )


def undo(target: Target, net: NetChange, scope: Predicate, *, fence: str = "undo-1", of: str = "pub-1") -> str:
    return target.commit(inverse(target, net, scope, fence=fence, of=of))
