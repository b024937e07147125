"""The stage on Iceberg, beyond the contract of targets: refs, cut partitions, delete files, expired commits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

from backcast.errors import ChunkFailed, Refused
from backcast.model.scope import Predicate
from backcast.model.table import Stage
from backcast.testing.target_iceberg import IcebergLab
from backcast.testing.target_moves import ALL, days, frame, instants, open_stage, publish, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_opening_a_stage_completes_what_a_crash_left(spark: SparkSession, namespace: str) -> None:
    """With only the branch, or only the tag, the missing one is created; the base stays the recorded one."""
    table = IcebergLab(spark, namespace).three_days()
    target, name = table.target(), table.name
    base = target.facts().version
    table.append((900, 1, 1.0))
    for number, kept in enumerate(("BRANCH", "TAG")):
        stage = Stage(run_id=f"r{number}", branch=f"branch{number}", base_tag=f"tag{number}", base=base)
        ref = stage.branch if kept == "BRANCH" else stage.base_tag
        spark.sql(f"ALTER TABLE {name} CREATE {kept} {ref} AS OF VERSION {base}")
        target.open_stage(stage)
        found = {row.name: str(row.snapshot_id) for row in spark.sql(f"SELECT * FROM {name}.refs").collect()}
        assert found[stage.branch] == found[stage.base_tag] == base


CUTS = {
    "hours of a day partition": (
        instants("ts", "2026-01-02T06:00:00.000000Z", "2026-01-02T12:00:00.000000Z"),
        instants("ts", "2026-01-02T00:00:00.000000Z", "2026-01-03T00:00:00.000000Z"),
    ),
    "a New York day over UTC days": (
        instants("ts", "2026-01-02T05:00:00.000000Z", "2026-01-03T05:00:00.000000Z"),
        instants("ts", "2026-01-02T00:00:00.000000Z", "2026-01-04T00:00:00.000000Z"),
    ),
}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)
def test_a_window_that_cuts_partitions_is_staged_row_by_row(
    spark: SparkSession, namespace: str, cut: tuple[Predicate, Predicate]
) -> None:
    """Overwriting by that filter is refused by Iceberg; row-exact, the rows around the window are carried over."""
    window, conflict_scope = cut
    table = IcebergLab(spark, namespace).create(columns="id bigint, ts timestamp, v double", by="days(ts)")
    hours = spark.range(72).selectExpr(
        "id", "TIMESTAMP'2026-01-01 00:00:00Z' + make_dt_interval(0, id) AS ts", "0D AS v"
    )
    hours.coalesce(1).writeTo(table.name).append()
    target = table.target()
    base = target.facts().version
    stage = open_stage(target)
    rows = target.read(base, window).withColumn("v", F.lit(1.0)).coalesce(1)
    with pytest.raises(ChunkFailed, match="some, but not all, rows match filter"):
        write(target, stage, window, rows)

    for token in (1, 2):
        commit = write(target, stage, window, rows, token=token, exact=True)
    inside = target.read(base, window).count()
    assert commit.rows == inside
    staged = target.read(commit.version, ALL)
    assert staged.agg(F.count("*"), F.countDistinct("id"), F.sum("v")).collect()[0][:] == (72, 72, float(inside))
    net = target.net_change(stage, commit.version, conflict_scope)
    assert net.outside == ()
    assert net.superseded
    assert target.net_change(stage, commit.version, window).outside

    publish(target, net, conflict_scope)
    after = target.read(target.facts().version, ALL)
    assert after.agg(F.count("*"), F.countDistinct("id"), F.sum("v")).collect()[0][:] == (72, 72, float(inside))
    assert target.read(target.facts().version, window).where("v = 1").count() == inside


def test_delete_files_on_the_stage_are_refused(spark: SparkSession, namespace: str) -> None:
    """A merge-on-read table leaves delete files on its stage; publishing data files alone would lose them."""
    table = IcebergLab(spark, namespace).three_days()
    table.set_property("write.delete.mode", "merge-on-read")
    target = table.target()
    stage = open_stage(target)
    spark.sql(f"DELETE FROM {table.name}.`branch_{stage.branch}` WHERE id = 0")
    commit = write(target, stage, days(2, 2), frame(spark, [(1, 2, 5.0)]))
    with pytest.raises(Refused, match="delete files"):
        target.net_change(stage, commit.version, days(1, 3))


def test_a_stage_whose_older_commits_expired_still_folds(spark: SparkSession, namespace: str) -> None:
    """Expiry keeps a branch's head but not the commits behind it; the same files are found by comparing both ends."""
    table = IcebergLab(spark, namespace).three_days()
    target = table.target()
    stage = open_stage(target)
    write(target, stage, days(1, 1), frame(spark, [(0, 1, 5.0)]), token=1)
    commit = write(target, stage, days(2, 2), frame(spark, [(1, 2, 6.0)]), token=2)
    net = target.net_change(stage, commit.version, days(1, 2))
    table.append((900, 3, 1.0))
    table.expire("the core API")
    assert len(target.history(stage)) == 1
    assert target.net_change(stage, commit.version, days(1, 2)).digest() == net.digest()
    publish(target, net, days(1, 2))
    assert {(900, 3, 1.0), (1, 2, 6.0)} <= set(table.values())
