"""The stage: hidden from readers, replaced chunk by chunk, repeatable, undisturbed by live commits."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from backcast.errors import ChunkFailed, Conflict, Refused
from backcast.model.scope import Predicate
from backcast.model.table import Stage
from backcast.targets.iceberg.target import IcebergTarget
from tests.spark.iceberg_kit import (
    ALL,
    day_table,
    days,
    frame,
    iceberg,
    instants,
    live,
    open_stage,
    publish,
    refs,
    rows_of,
    write,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_chunks_replace_their_scope_on_a_branch_that_readers_do_not_see(spark: SparkSession, namespace: str) -> None:
    """A chunk can be repeated, a scope can become empty, and the table's own metadata tells which chunk wrote what."""
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    before = rows_of(spark, name)
    stage = open_stage(target)
    target.open_stage(stage)
    assert target.history(stage) == ()

    first = write(target, stage, days(1, 2), frame(spark, [(0, 1, 5.0), (1, 2, 6.0)]), token=7, chunks=("a", "b"))
    again = write(target, stage, days(1, 1), frame(spark, [(0, 1, 8.0)]), token=8, chunks=("a",))
    emptied = write(target, stage, days(3, 3), frame(spark, []), token=9, chunks=("c, d",))

    assert rows_of(spark, name) == before
    assert rows_of(spark, f"{name}.`branch_{stage.branch}`") == [(0, 1, 8.0), (1, 2, 6.0)]
    assert target.history(stage) == (first, again, emptied)
    assert [(c.chunk_ids, c.token, c.rows) for c in target.history(stage)] == [
        (("a", "b"), 7, 2),
        (("a",), 8, 1),
        (("c, d",), 9, 0),
    ]
    assert sorted((f.partition, f.rows) for f in first.added) == [("day=2026-01-01", 1), ("day=2026-01-02", 1)]

    net = target.net_change(stage, emptied.version, days(1, 3))
    assert sorted(f.partition for f in net.added) == ["day=2026-01-01", "day=2026-01-02"]
    assert sorted(f.partition for f in net.removed) == ["day=2026-01-01", "day=2026-01-02", "day=2026-01-03"]
    assert net.superseded == tuple(f.path for f in first.added if f.partition == "day=2026-01-01")
    assert net.outside == ()
    middle = target.net_change(stage, first.version, days(1, 3))
    assert middle.digest() != net.digest()

    other = Stage(run_id="r2", branch="bf-r2", base_tag="bf-r2-base", base=stage.base)
    assert target.history(other) == ()


def test_opening_a_stage_completes_what_a_crash_left(spark: SparkSession, namespace: str) -> None:
    """With only the branch, or only the tag, the missing one is created; the base stays the recorded one."""
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    base = target.facts().version
    live(spark, name, (900, 1, 1.0))
    for number, kept in enumerate(("BRANCH", "TAG")):
        stage = Stage(run_id=f"r{number}", branch=f"branch{number}", base_tag=f"tag{number}", base=base)
        ref = stage.branch if kept == "BRANCH" else stage.base_tag
        spark.sql(f"ALTER TABLE {name} CREATE {kept} {ref} AS OF VERSION {base}")
        target.open_stage(stage)
        found = {row.name: str(row.snapshot_id) for row in spark.sql(f"SELECT * FROM {name}.refs").collect()}
        assert found[stage.branch] == found[stage.base_tag] == base


def test_a_stage_of_an_empty_table_starts_empty_beside_live_rows(spark: SparkSession, namespace: str) -> None:
    """Rows that arrive after the stage was opened are not on it; a stage opened too late is refused."""
    name = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (id bigint, day date, v double) USING iceberg PARTITIONED BY (day)")
    target = IcebergTarget(spark, name)
    stage = open_stage(target)
    live(spark, name, (900, 1, 1.0), (901, 2, 1.0))
    target.open_stage(stage)
    commit = write(target, stage, days(1, 1), frame(spark, [(0, 1, 5.0)]))
    net = target.net_change(stage, commit.version, days(1, 1))
    assert rows_of(spark, f"{name}.`branch_{stage.branch}`") == [(0, 1, 5.0)]
    assert (len(net.added), net.removed) == (1, ())

    moved = target.movement(None, days(1, 1))
    assert [commit.operation for commit in moved.commits] == ["append"]
    publish(target, net, days(1, 1), keep=True)
    assert rows_of(spark, name) == [(0, 1, 5.0), (900, 1, 1.0), (901, 2, 1.0)]
    with pytest.raises(Conflict, match="empty at the base"):
        target.open_stage(Stage(run_id="late", branch="late", base_tag="late-base", base=None))
    assert "late" not in refs(spark, name)


CUTS = {
    "an unpartitioned table": ("", instants("ts", "2026-01-01T12:00:00.000000Z", "2026-01-02T12:00:00.000000Z"), ALL),
    "hours of a day partition": (
        "PARTITIONED BY (days(ts))",
        instants("ts", "2026-01-02T06:00:00.000000Z", "2026-01-02T12:00:00.000000Z"),
        instants("ts", "2026-01-02T00:00:00.000000Z", "2026-01-03T00:00:00.000000Z"),
    ),
    "a New York day over UTC days": (
        "PARTITIONED BY (days(ts))",
        instants("ts", "2026-01-02T05:00:00.000000Z", "2026-01-03T05:00:00.000000Z"),
        instants("ts", "2026-01-02T00:00:00.000000Z", "2026-01-04T00:00:00.000000Z"),
    ),
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_a_window_that_cuts_files_is_staged_row_by_row(
    spark: SparkSession, namespace: str, cut: tuple[str, Predicate, Predicate]
) -> None:
    """Overwriting by that filter is refused by Iceberg; row-exact, the rows around the window are carried over."""
    partitioning, window, conflict_scope = cut
    name = f"{namespace}.t"
    spark.sql(f"CREATE TABLE {name} (id bigint, ts timestamp, v double) USING iceberg {partitioning}")
    hours = spark.range(72).selectExpr(
        "id", "TIMESTAMP'2026-01-01 00:00:00Z' + make_dt_interval(0, id) AS ts", "0D AS v"
    )
    hours.coalesce(1).writeTo(name).append()
    target = IcebergTarget(spark, name)
    base = target.facts().version
    stage = open_stage(target)
    rows = target.read(base, window).withColumn("v", F.lit(1.0)).coalesce(1)
    with pytest.raises(ChunkFailed, match="some, but not all, rows match filter"):
        write(target, stage, window, rows)

    for token in (1, 2):
        commit = write(target, stage, window, rows, token=token, exact=True)
    inside = target.read(base, window).count()
    assert commit.rows == inside
    staged = spark.table(f"{name}.`branch_{stage.branch}`")
    assert staged.agg(F.count("*"), F.countDistinct("id"), F.sum("v")).collect()[0][:] == (72, 72, float(inside))
    net = target.net_change(stage, commit.version, conflict_scope)
    assert net.outside == ()
    assert net.superseded
    if conflict_scope != ALL:
        assert target.net_change(stage, commit.version, window).outside

    publish(target, net, conflict_scope)
    after = target.read(target.facts().version, ALL)
    assert after.agg(F.count("*"), F.countDistinct("id"), F.sum("v")).collect()[0][:] == (72, 72, float(inside))
    assert target.read(target.facts().version, window).where("v = 1").count() == inside


def test_rows_written_outside_the_scope_are_found(spark: SparkSession, namespace: str) -> None:
    """Iceberg's overwrite accepts them; the net change names their files, by partition or by column bounds."""
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    stage = open_stage(target)
    commit = write(target, stage, days(1, 1), frame(spark, [(0, 1, 5.0), (1, 2, 6.0)]))
    net = target.net_change(stage, commit.version, days(1, 1))
    assert [f.partition for f in net.outside] == ["day=2026-01-02"]
    assert target.net_change(stage, commit.version, days(1, 2)).outside == ()


def test_delete_files_on_the_stage_are_refused(spark: SparkSession, namespace: str) -> None:
    """A merge-on-read table leaves delete files on its stage; publishing data files alone would lose them."""
    name = day_table(spark, namespace, properties="TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    target = IcebergTarget(spark, name)
    stage = open_stage(target)
    spark.sql(f"DELETE FROM {name}.`branch_{stage.branch}` WHERE id = 0")
    commit = write(target, stage, days(2, 2), frame(spark, [(1, 2, 5.0)]))
    with pytest.raises(Refused, match="delete files"):
        target.net_change(stage, commit.version, days(1, 3))


def test_a_stage_whose_older_commits_expired_still_folds(spark: SparkSession, namespace: str) -> None:
    """Expiry keeps a branch's head but not the commits behind it; the same files are found by comparing both ends."""
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    stage = open_stage(target)
    write(target, stage, days(1, 1), frame(spark, [(0, 1, 5.0)]), token=1)
    commit = write(target, stage, days(2, 2), frame(spark, [(1, 2, 6.0)]), token=2)
    net = target.net_change(stage, commit.version, days(1, 2))
    live(spark, name, (900, 3, 1.0))
    expire = iceberg(spark, name).expireSnapshots()
    expire.expireOlderThan(2**62).retainLast(1).commit()
    assert len(target.history(stage)) == 1
    assert target.net_change(stage, commit.version, days(1, 2)).digest() == net.digest()
    publish(target, net, days(1, 2))
    assert (900, 3, 1.0) in rows_of(spark, name)
    assert (1, 2, 6.0) in rows_of(spark, name)


def test_a_transform_that_raises_fails_the_chunk_and_leaves_no_commit(spark: SparkSession, namespace: str) -> None:
    """The message names what the transform said; the branch is where it was."""
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    stage = open_stage(target)
    rows = frame(spark, [(0, 1, 1.0)]).withColumn("v", F.raise_error(F.lit("the transform broke")).cast("double"))
    with pytest.raises(ChunkFailed, match="the transform broke"):
        write(target, stage, days(1, 1), rows)
    assert target.history(stage) == ()


def test_staging_beside_a_busy_live_writer(spark: SparkSession, namespace: str) -> None:
    """Live commits during open, write and fold neither fail the stage nor get lost or staged."""
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    stop, landed, failures = threading.Event(), [], []

    def busy() -> None:
        session = spark.newSession()
        while not stop.is_set() and len(landed) < 40:
            try:
                live(session, name, (1000 + len(landed), 3, 0.0))
                landed.append(1)
            except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
                failures.append(error)

    writer = threading.Thread(target=busy)
    writer.start()
    try:
        stage = open_stage(target)
        for token in (1, 2, 3):
            write(target, stage, days(1, 1), frame(spark, [(token, 1, 5.0)]), token=token, exact=token == 3)
    finally:
        stop.set()
        writer.join()
    assert failures == []
    assert [commit.token for commit in target.history(stage)] == [1, 2, 3]
    net = target.net_change(stage, target.history(stage)[-1].version, days(1, 1))
    assert (len(net.added), len(net.removed)) == (1, 1)
    assert len(rows_of(spark, name)) == 12 + len(landed)
