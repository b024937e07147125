"""Small tables, scopes and the shortest possible publish and undo for the tests of the Iceberg adapter."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from backcast.model.column import TimeColumn, TimeKind
from backcast.model.scope import Predicate, TimeClause
from backcast.model.table import Change, Movement, NetChange, Stage, StageCommit, StageWrite
from backcast.targets.iceberg.target import IcebergTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DAY = TimeColumn(column="day", kind=TimeKind.DATE)
FIRST = date(2026, 1, 1)
ALL = Predicate()


def days(first: int, last: int) -> Predicate:
    """Days of January 2026, both included."""
    low, high = FIRST + timedelta(days=first - 1), FIRST + timedelta(days=last)
    return Predicate(clauses=(TimeClause(time=DAY, ranges=((low.isoformat(), high.isoformat()),)),))


def instants(column: str, start: str, end: str) -> Predicate:
    """A half-open range of a timestamp column; bounds in UTC."""
    return Predicate(clauses=(TimeClause(time=TimeColumn(column=column), ranges=((start, end),)),))


def day_table(spark: SparkSession, namespace: str, *, properties: str = "") -> str:
    """Three days of January 2026, four rows each, one file a day: (id, day, v)."""
    name = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (id bigint, day date, v double) USING iceberg PARTITIONED BY (day) {properties}")
    spark.range(12, numPartitions=1).selectExpr(
        "id", "date_add(DATE'2026-01-01', cast(id % 3 as int)) AS day", "cast(id AS double) AS v"
    ).writeTo(name).append()
    return name


def frame(spark: SparkSession, rows: Iterable[tuple[int, int, float]]) -> DataFrame:
    """Rows as (id, day of January, v)."""
    values = [(number, FIRST + timedelta(days=day - 1), v) for number, day, v in rows]
    return spark.createDataFrame(values, "id bigint, day date, v double").coalesce(1)


def live(spark: SparkSession, table: str, *rows: tuple[int, int, float]) -> None:
    """What somebody else appends to the live table."""
    frame(spark, rows).writeTo(table).append()


def rows_of(spark: SparkSession, table: str) -> list[tuple[int, int, float]]:
    return sorted((row.id, row.day.day, row.v) for row in spark.table(table).collect())


def open_stage(target: IcebergTarget, run: str = "r1") -> Stage:
    stage = Stage(run_id=run, branch=f"bf-{run}", base_tag=f"bf-{run}-base", base=target.facts().version)
    target.open_stage(stage)
    return stage


def write(
    target: IcebergTarget,
    stage: Stage,
    scope: Predicate,
    rows: DataFrame,
    *,
    token: int = 1,
    exact: bool = False,
    chunks: tuple[str, ...] = ("c1",),
) -> StageCommit:
    return target.write(stage, StageWrite(chunks, token, scope, exact), rows)


def publish(
    target: IcebergTarget, net: NetChange, scope: Predicate, *, fence: str = "pub-1", keep: bool = False
) -> str:
    """Publish the net change on today's head, whatever moved there."""
    moved = target.movement(net.base, scope)
    return target.commit(publication(net, moved, scope, fence=fence, keep=keep))


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


def undo(target: IcebergTarget, net: NetChange, scope: Predicate, *, fence: str = "undo-1") -> str:
    """The inverse of the net change, on today's head."""
    return target.commit(
        Change(
            fence=fence,
            head=target.facts().version,
            scope=scope,
            add_from=net.base,
            add=frozenset(each.path for each in net.removed),
            remove=frozenset(each.path for each in net.added),
            guard_rows=False,
            properties={"backcast.change": "undo"},
        )
    )


def restated(spark: SparkSession, target: IcebergTarget, scope: Predicate) -> tuple[Stage, NetChange]:
    """A stage that multiplies v by ten in the scope, and its net change."""
    stage = open_stage(target)
    commit = write(
        target, stage, scope, target.read(stage.base, scope).selectExpr("id", "day", "v * 10 AS v").coalesce(1)
    )
    return stage, target.net_change(stage, commit.version, scope)


def iceberg(spark: SparkSession, table: str) -> Any:
    """The Java table, as other tools see it."""
    return spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, table)


def snapshot_ids(spark: SparkSession, table: str) -> set[str]:
    return {str(row.snapshot_id) for row in spark.sql(f"SELECT snapshot_id FROM {table}.snapshots").collect()}


def refs(spark: SparkSession, table: str) -> set[str]:
    return {row.name for row in spark.sql(f"SELECT name FROM {table}.refs").collect()}
