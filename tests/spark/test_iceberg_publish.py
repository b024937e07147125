"""Publish: one metadata-only commit of exactly the staged files, decided on the head, fenced by a tag."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError

from backcast import faults
from backcast.errors import Conflict, OutcomeUnknown, Refused, StateConflict
from backcast.spark.iceberg.handle import TableHandle
from backcast.targets.iceberg.publish import _refusals
from backcast.targets.iceberg.target import IcebergTarget
from tests.spark.iceberg_kit import (
    day_table,
    days,
    frame,
    iceberg,
    live,
    open_stage,
    publication,
    publish,
    refs,
    restated,
    rows_of,
    write,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def armed() -> Iterator[None]:
    yield
    faults.arm(None)


def test_publish_swaps_files_beside_live_rows(spark: SparkSession, namespace: str) -> None:
    """Live rows out of scope are no movement; in scope they are, and with rows kept they stay beside the restated."""
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    scope = days(1, 2)
    _, net = restated(spark, target, scope)
    before = rows_of(spark, name)
    live(spark, name, (900, 3, 1.0))
    assert not target.movement(net.base, scope).moved
    live(spark, name, (901, 1, 1.0))
    moved = target.movement(net.base, scope)
    assert moved.moved
    assert not moved.only_compaction
    assert [(f.partition, f.rows) for f in moved.added] == [("day=2026-01-01", 1)]
    assert [(c.operation, c.added, c.removed) for c in moved.commits] == [("append", 1, 0)]

    assert target.probe("pub-1") is None
    version = publish(target, net, scope, keep=True)
    assert target.probe("pub-1") == version == target.facts().version
    expected = [(i, d, v * 10 if d < 3 else v) for i, d, v in before] + [(900, 3, 1.0), (901, 1, 1.0)]
    assert rows_of(spark, name) == sorted(expected)
    summary = spark.sql(f"SELECT summary FROM {name}.snapshots WHERE snapshot_id = {version}").collect()[0].summary
    assert summary["backcast.fence"] == "pub-1"


def test_a_second_publish_with_the_same_fence_is_refused(spark: SparkSession, namespace: str) -> None:
    """Neither the same fence nor the same files under another fence can double rows."""
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    _, net = restated(spark, target, days(1, 1))
    publish(target, net, days(1, 1))
    after = rows_of(spark, name)
    with pytest.raises(StateConflict):
        publish(target, net, days(1, 1))
    again = publication(net, target.movement(net.base, days(1, 1)), days(1, 1), fence="pub-2")
    with pytest.raises(Refused, match="live already"):
        target.commit(again)
    with pytest.raises(Conflict, match="not live any more"):
        target.commit(replace(again, add=frozenset()))
    with pytest.raises(Refused, match="not in version"):
        target.commit(replace(again, remove=frozenset(), add=frozenset({"no/such/file.parquet"})))
    assert rows_of(spark, name) == after
    assert "pub-2" not in refs(spark, name)


def test_a_commit_elsewhere_since_the_decision_is_no_conflict(spark: SparkSession, namespace: str) -> None:
    """Otherwise a writer that commits faster than files are listed would starve every publish and every undo."""
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    scope = days(1, 1)
    _, net = restated(spark, target, scope)
    decided = publication(net, target.movement(net.base, scope), scope)
    live(spark, name, (900, 3, 1.0))
    target.commit(decided)
    assert sum(v for _, day, v in rows_of(spark, name) if day == 1) == 180
    assert 900 in {number for number, _, _ in rows_of(spark, name)}


@pytest.mark.parametrize(
    "somebody",
    [
        "INSERT INTO {} VALUES (901, DATE'2026-01-01', 1.0)",
        "DELETE FROM {} WHERE day = DATE'2026-01-01' AND id = 0",
        "DELETE FROM {} WHERE day = DATE'2026-01-01'",
        "CALL lake.system.rewrite_data_files(table => '{}', options => map('rewrite-all', 'true'))",
    ],
)
def test_a_change_in_scope_since_the_decision_is_a_conflict_and_nothing_lands(
    spark: SparkSession, namespace: str, somebody: str
) -> None:
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    scope = days(1, 1)
    _, net = restated(spark, target, scope)
    decided = publication(net, target.movement(net.base, scope), scope)
    spark.sql(somebody.format(name))
    now = rows_of(spark, name)
    with pytest.raises(Conflict, match="not landed"):
        target.commit(decided)
    assert target.probe("pub-1") is None
    assert rows_of(spark, name) == now


def test_a_delete_beside_an_exact_scope_since_the_decision_does_not_come_back(
    spark: SparkSession, namespace: str
) -> None:
    """Files of an exact scope carry rows beside it: one that was deleted meanwhile must not be published again."""
    name = f"{namespace}.plain"
    spark.sql(f"CREATE TABLE {name} (id bigint, day date, v double) USING iceberg")
    live(spark, name, (1, 1, 1.0), (2, 2, 2.0), (3, 3, 3.0))
    target = IcebergTarget(spark, name)
    scope = days(2, 2)
    stage = open_stage(target)
    staged = write(target, stage, scope, frame(spark, [(2, 2, 20.0)]), exact=True)
    net = target.net_change(stage, staged.version, scope)
    decided = publication(net, target.movement(net.base, scope), scope)
    spark.sql(f"DELETE FROM {name} WHERE id = 3")
    with pytest.raises(Conflict, match="not landed"):
        target.commit(decided)
    assert rows_of(spark, name) == [(1, 1, 1.0), (2, 2, 2.0)]


@pytest.mark.usefixtures("armed")
def test_a_live_commit_while_landing_makes_a_conflict_and_nothing_lands(spark: SparkSession, namespace: str) -> None:
    """Overtaken after the last look: certainly not landed; decided again it lands."""
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    scope = days(1, 1)
    _, net = restated(spark, target, scope)
    reached = []

    def overtake(point: str) -> None:
        reached.append(point)
        if point == "publish.before-commit":
            live(spark, name, (901, 3, 1.0))

    faults.arm(overtake)
    with pytest.raises(Conflict, match="not landed"):
        publish(target, net, scope)
    faults.arm(None)
    assert reached == ["publish.before-commit"]
    assert target.probe("pub-1") is None
    assert sum(v for _, day, v in rows_of(spark, name) if day == 1) == 0 + 3 + 6 + 9

    publish(target, net, scope)
    assert sum(v for _, day, v in rows_of(spark, name) if day == 1) == 180
    assert 901 in {number for number, _, _ in rows_of(spark, name)}


def test_publish_when_the_history_since_the_base_was_expired(spark: SparkSession, namespace: str) -> None:
    """The base tag keeps the base's file list; main's broken chain is no obstacle, and explains nothing away."""
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    scope = days(1, 1)
    stage, net = restated(spark, target, scope)
    for number in (900, 901):
        live(spark, name, (number, 2, 1.0))
    spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{name}', older_than => TIMESTAMP '2099-01-01 00:00:00', "
        "retain_last => 1)"
    )
    moved = target.movement(net.base, scope)
    assert not moved.moved
    assert target.net_change(stage, net.staged, scope).digest() == net.digest()
    elsewhere = target.movement(net.base, days(2, 2))
    assert elsewhere.moved
    assert not elsewhere.only_compaction
    publish(target, net, scope)
    assert sum(v for _, day, v in rows_of(spark, name) if day == 1) == 180
    assert len(rows_of(spark, name)) == 14


def test_compaction_of_the_scope_is_told_apart_from_live_rows(spark: SparkSession, namespace: str) -> None:
    """After compaction alone the head's files are removed instead; one that swallowed a live row is not compaction."""
    name = day_table(spark, namespace)
    live(spark, name, (100, 1, 100.0))
    target = IcebergTarget(spark, name)
    scope = days(1, 1)
    _, net = restated(spark, target, scope)
    rewrite = f"CALL lake.system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
    spark.sql(rewrite)
    live(spark, name, (900, 2, 1.0))
    moved = target.movement(net.base, scope)
    assert moved.moved
    assert moved.only_compaction
    assert [commit.operation for commit in moved.commits] == ["replace"]

    publish(target, net, scope)
    assert sum(v for _, day, v in rows_of(spark, name) if day == 1) == 1180
    base = target.facts().version
    live(spark, name, (901, 1, 1.0))
    spark.sql(rewrite)
    swallowed = target.movement(base, scope)
    assert swallowed.moved
    assert not swallowed.only_compaction
    assert [commit.operation for commit in swallowed.commits] == ["append", "replace"]


def test_a_scope_restated_to_empty_becomes_empty(spark: SparkSession, namespace: str) -> None:
    """Files only go; a change without any file still leaves its witness."""
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    stage = open_stage(target)
    commit = write(target, stage, days(1, 1), frame(spark, []))
    net = target.net_change(stage, commit.version, days(1, 1))
    assert net.added == ()
    publish(target, net, days(1, 1))
    assert {day for _, day, _ in rows_of(spark, name)} == {2, 3}

    nothing = replace(net, removed=())
    version = publish(target, nothing, days(1, 1), fence="pub-2")
    assert target.probe("pub-2") == version
    assert len(rows_of(spark, name)) == 8


def test_publish_writes_no_data_file_and_lists_only_near_the_scope(spark: SparkSession, namespace: str) -> None:
    """The published files are the staged ones, byte for byte, with their column statistics."""
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    _, net = restated(spark, target, days(1, 1))
    publish(target, net, days(1, 1))
    files = spark.sql(f"SELECT file_path, readable_metrics.v.upper_bound AS top FROM {name}.files").collect()
    published = {f.path for f in net.added}
    assert {row.top for row in files if row.file_path in published} == {90.0}
    assert len(files) == 3
    assert iceberg(spark, name).currentSnapshot().summary().get("added-data-files") == "1"


def test_only_a_certain_refusal_counts_as_not_landed(spark: SparkSession, namespace: str) -> None:
    """An unknown state stays unknown, also when a lost race caused it; so does an error of the catalog's database."""
    name = day_table(spark, namespace)
    target = IcebergTarget(spark, name)
    _, net = restated(spark, target, days(1, 1))
    change = publication(net, target.movement(net.base, days(1, 1)), days(1, 1))
    handle = TableHandle(spark, name)
    kinds = spark._jvm.org.apache.iceberg.exceptions
    race = kinds.CommitFailedException("overtaken", spark._jvm.java.util.ArrayList().toArray())
    raised = {
        race: Conflict,
        kinds.CommitStateUnknownException(race): OutcomeUnknown,
        spark._jvm.java.lang.IllegalStateException("the database went away"): OutcomeUnknown,
    }
    for java, expected in raised.items():
        with pytest.raises(expected), _refusals(handle, change, landing=True):
            raise Py4JJavaError("commitTransaction", java)
