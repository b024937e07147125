"""Undo and forgetting: live rows stay, statistics stay, and what others do later cannot hurt."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

import pytest

from backcast.errors import Refused
from backcast.model.table import Forget
from backcast.targets.iceberg.target import IcebergTarget
from tests.spark.iceberg_kit import (
    day_table,
    days,
    frame,
    iceberg,
    live,
    open_stage,
    publish,
    refs,
    restated,
    rows_of,
    snapshot_ids,
    undo,
    write,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FAR = 2**62


def on_disk(table: str, spark: SparkSession) -> set[str]:
    """Names of all data and metadata files of the table, but for the JSON of its versions."""
    root = Path(urlparse(iceberg(spark, table).location()).path)
    return {path.name for path in root.rglob("*") if path.suffix in (".parquet", ".avro")}


def test_undo_keeps_live_rows_and_the_statistics_of_restored_files(spark: SparkSession, namespace: str) -> None:
    """Old rows are back, rows written since the publish stay, and restored files still have their bounds."""
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    before = rows_of(spark, name)
    bounds = f"SELECT file_path, readable_metrics FROM {name}.files ORDER BY file_path"
    metrics = spark.sql(bounds).collect()
    _, net = restated(spark, target, days(1, 2))
    publish(target, net, days(1, 2))
    assert rows_of(spark, name) != before
    live(spark, name, (900, 1, 1.0), (901, 3, 1.0))
    undo(target, net, days(1, 2))
    assert rows_of(spark, name) == sorted([*before, (900, 1, 1.0), (901, 3, 1.0)])
    restored = {row.file_path: row.readable_metrics for row in spark.sql(bounds).collect()}
    for row in metrics:
        assert restored[row.file_path] == row.readable_metrics
        assert row.readable_metrics.v.lower_bound is not None
    assert target.missing(frozenset(f.path for f in (*net.added, *net.removed))) == frozenset()
    assert target.missing(frozenset({net.added[0].path + ".gone"})) == {net.added[0].path + ".gone"}


def expire_by_procedure(spark: SparkSession, name: str) -> None:
    older = "older_than => TIMESTAMP '2099-01-01 00:00:00'"
    spark.sql(f"CALL lake.system.expire_snapshots(table => '{name}', {older}, retain_last => 1)")


def expire_by_core(spark: SparkSession, name: str) -> None:
    iceberg(spark, name).expireSnapshots().expireOlderThan(FAR).retainLast(1).commit()


def remove_orphans(spark: SparkSession, name: str) -> None:
    actions: Any = spark._jvm.org.apache.iceberg.spark.actions.SparkActions
    actions.get().deleteOrphanFiles(iceberg(spark, name)).olderThan(FAR).execute()


def compact(spark: SparkSession, name: str) -> None:
    spark.sql(f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))")


@pytest.mark.parametrize("taken_back", [False, True], ids=["published", "published and undone"])
@pytest.mark.parametrize("expire", [expire_by_core, expire_by_procedure])
def test_what_others_do_after_forgetting_cannot_hurt(
    spark: SparkSession, namespace: str, expire: Any, taken_back: bool
) -> None:
    """Expiry by either way, removal of orphans and compaction leave every row readable, and nothing of ours behind."""
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    scope = days(1, 2)
    stage, net = restated(spark, target, scope)
    live(spark, name, (900, 1, 1.0))
    versions = [publish(target, net, scope, keep=True)]
    fences = ["pub-1"]
    live(spark, name, (901, 1, 1.0))
    if taken_back:
        versions.append(undo(target, net, scope))
        fences.append("undo-1")
        live(spark, name, (902, 1, 1.0))
    expected = rows_of(spark, name)

    if expire is expire_by_procedure:
        expire(spark, name)
        assert rows_of(spark, name) == expected
        assert {stage.branch, stage.base_tag, *fences} <= refs(spark, name)

    forgotten = tuple(versions) if taken_back else ()
    gone = target.forget(Forget(refs=(stage.base_tag, *fences), versions=forgotten, branch=stage.branch))
    assert gone > 0
    assert refs(spark, name) == {"main"}
    assert rows_of(spark, name) == expected

    for number in (903, 904):
        live(spark, name, (number, 1, 1.0))
    expire(spark, name)
    remove_orphans(spark, name)
    compact(spark, name)
    expire(spark, name)
    assert rows_of(spark, name) == sorted([*expected, (903, 1, 1.0), (904, 1, 1.0)])


def test_forget_takes_exactly_what_it_is_told(spark: SparkSession, namespace: str) -> None:
    """Old snapshots of others survive whatever their age, superseded files go, and repeating it does nothing."""
    age = "'history.expire.max-snapshot-age-ms' = '1', 'history.expire.min-snapshots-to-keep' = '1'"
    name = day_table(spark, namespace, properties=f"TBLPROPERTIES ({age})")
    target = IcebergTarget(spark, name)
    live(spark, name, (900, 3, 1.0))
    spark.sql(f"ALTER TABLE {name} CREATE TAG theirs AS OF VERSION {target.facts().version} RETAIN 1 DAYS")
    others, files = snapshot_ids(spark, name), on_disk(name, spark)
    stage = open_stage(target)
    for token in (1, 2):
        commit = write(target, stage, days(1, 1), frame(spark, [(0, 1, 5.0)]), token=token)
    head = target.facts().version
    assert head is not None
    wanted = Forget(refs=(stage.base_tag, "never-there"), versions=(commit.version, head, "12345"), branch=stage.branch)
    with pytest.raises(Refused):
        target.forget(Forget(refs=("main",), versions=(), branch=None))
    gone = target.forget(wanted)
    assert snapshot_ids(spark, name) == others
    assert refs(spark, name) == {"main", "theirs"}
    assert on_disk(name, spark) == files
    assert gone >= 4
    assert target.forget(wanted) == 0

    second = open_stage(target, "r2")
    write(target, second, days(1, 1), frame(spark, [(0, 1, 5.0)]))
    target.forget(Forget(refs=(second.branch, second.base_tag), versions=(), branch=None))
    assert snapshot_ids(spark, name) == others, "a branch among the refs takes its snapshots with it"
    assert len(rows_of(spark, name)) == 13


def test_forget_beside_a_busy_live_writer(spark: SparkSession, namespace: str) -> None:
    """Every live commit lands and stays; what was published stays readable."""
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    stage, net = restated(spark, target, days(1, 1))
    publish(target, net, days(1, 1))
    failures: list[Exception] = []

    def busy() -> None:
        session = spark.newSession()
        try:
            for number in range(900, 908):
                live(session, name, (number, 1, 0.0))
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            failures.append(error)

    writer = threading.Thread(target=busy)
    writer.start()
    target.forget(Forget(refs=(stage.base_tag, "pub-1"), versions=(), branch=stage.branch))
    writer.join()
    assert failures == []
    assert len(rows_of(spark, name)) == 20
    assert sum(v for _, day, v in rows_of(spark, name) if day == 1) == 180
