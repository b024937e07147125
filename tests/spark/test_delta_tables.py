"""Delta tables of every kind: each feature is published and undone, or refused by the plan with the reason."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.errors import ChunkFailed, Conflict
from backcast.model.finding import Severity
from backcast.model.scope import Predicate
from backcast.model.stage import stage_of
from backcast.model.table import FileList, Forget, StageWrite
from backcast.ports import Rest
from backcast.spark.gateway import find_cause
from backcast.spark.inspection import tables
from backcast.targets.delta.exact import commit_files, stage_now
from backcast.targets.delta.publish import NOT_LANDED
from backcast.targets.delta.target import DeltaTarget
from backcast.testing.faults import at_point
from tests.spark.delta_kit import COLUMNS, ROWS, SCOPE, Create, files_in_scope, publish, rows, staged, undo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("columns", "layout", "properties"),
    [
        pytest.param(COLUMNS, "PARTITIONED BY (day)", "", id="partitioned"),
        pytest.param(COLUMNS, "", "", id="unpartitioned"),
        pytest.param(COLUMNS, "CLUSTER BY (day)", "", id="clustered"),
        pytest.param(
            COLUMNS, "PARTITIONED BY (day)", "'delta.columnMapping.mode' = 'name'", id="column mapping by name"
        ),
        pytest.param(COLUMNS, "PARTITIONED BY (day)", "'delta.columnMapping.mode' = 'id'", id="column mapping by id"),
        pytest.param(COLUMNS, "PARTITIONED BY (day)", "'delta.enableDeletionVectors' = 'true'", id="deletion vectors"),
        pytest.param(COLUMNS, "PARTITIONED BY (day)", "'delta.enableChangeDataFeed' = 'true'", id="change data feed"),
        pytest.param(COLUMNS, "", "'delta.constraints.positive' = 'v >= 0'", id="constraint"),
        pytest.param(COLUMNS, "", "'delta.enableInCommitTimestamps' = 'true'", id="in-commit timestamps"),
        pytest.param(COLUMNS, "PARTITIONED BY (day)", "'delta.checkpointPolicy' = 'v2'", id="V2 checkpoints"),
        pytest.param(
            "id BIGINT, day DATE, v DOUBLE DEFAULT 0",
            "PARTITIONED BY (day)",
            "'delta.feature.allowColumnDefaults' = 'supported'",
            id="default values",
        ),
        pytest.param(COLUMNS, "", "'delta.feature.timestampNtz' = 'supported'", id="timestamps without zone"),
    ],
)
def test_tables_of_every_kind_are_published_and_undone_without_writing_data(
    create: Create, tmp_path: Path, columns: str, layout: str, properties: str
) -> None:
    target = create(columns, layout, properties)
    before, settings = rows(target), target.facts().properties
    assert not [
        each for each in target.findings(files_in_scope(target), timedelta(days=7)) if each.severity is Severity.BLOCK
    ]
    net = staged(target, exact=not layout.startswith("PARTITIONED"))
    assert rows(target) == before
    files = set(tmp_path.rglob("*.parquet"))
    change = publish(target, net)
    assert rows(target) == Counter({(a, b, c * 10 if b.day == 2 else c): n for (a, b, c), n in before.items()})  # type: ignore[attr-defined, operator]
    undo(target, net, change)
    assert rows(target) == before
    assert set(tmp_path.rglob("*.parquet")) == files
    assert target.facts().properties == settings


@pytest.mark.parametrize(
    ("columns", "properties", "code"),
    [
        (COLUMNS, "'delta.appendOnly' = 'true'", "target.property"),
        (COLUMNS, "'delta.enableRowTracking' = 'true'", "target.feature"),
        (COLUMNS, "'delta.feature.rowTracking' = 'supported'", "target.feature"),
        (COLUMNS, "'delta.setTransactionRetentionDuration' = 'interval 1 days'", "target.transaction-retention"),
        (COLUMNS, "'delta.enableTypeWidening' = 'true'", "target.feature"),
        (
            COLUMNS,
            "'delta.enableIcebergCompatV2' = 'true', 'delta.columnMapping.mode' = 'name'",
            "target.property",
        ),
        ("id BIGINT, day DATE, v DOUBLE, n BIGINT GENERATED ALWAYS AS IDENTITY", "", "target.identity-column"),
    ],
)
def test_what_is_not_proven_is_refused_with_the_reason(
    spark: SparkSession, tmp_path: Path, columns: str, properties: str, code: str
) -> None:
    name, tail = f"delta.`{tmp_path}/t`", f"TBLPROPERTIES ({properties})" if properties else ""
    spark.sql(f"CREATE TABLE {name} ({columns}) USING delta {tail}")
    found = {each.code: each for each in DeltaTarget(spark, name).findings(FileList(None, ()), timedelta(days=1))}
    assert found[code].severity is Severity.BLOCK
    assert found[code].remedy
    assert "backcast gc" in found["target.gc"].remedy


@pytest.mark.parametrize(
    ("columns", "properties", "reason"),
    [
        (COLUMNS, "'delta.constraints.small' = 'v < 100'", "small"),
        ("id BIGINT, day DATE, v DOUBLE NOT NULL", "", "NOT NULL"),
    ],
    ids=["check constraint", "not null"],
)
@pytest.mark.parametrize("layout", ["PARTITIONED BY (day)", ""], ids=["whole partitions", "row-exact"])
def test_rows_that_break_a_constraint_of_the_table_do_not_reach_the_stage(
    create: Create, columns: str, properties: str, reason: str, layout: str
) -> None:
    target = create(columns, layout, properties)
    stage = stage_of("r1", target.facts().version)
    target.open_stage(stage, SCOPE)
    broken = "CAST(NULL AS DOUBLE)" if reason == "NOT NULL" else "v * 100"
    wrong = target.read(stage.base, SCOPE).selectExpr("id", "day", f"{broken} AS v")
    with pytest.raises(ChunkFailed, match=reason):
        target.write(stage, StageWrite(("c1",), 1, SCOPE, exact=not layout), wrong)
    assert target.history(stage) == ()


def test_deletion_vectors_in_scope_are_refused_and_elsewhere_they_are_not(create: Create, spark: SparkSession) -> None:
    target = create(properties="'delta.enableDeletionVectors' = 'true'")
    name = target.facts().identity.name
    spark.sql(f"DELETE FROM {name} WHERE id = 0")
    assert not files_in_scope(target).has_deletes
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    codes = {
        each.code
        for each in target.findings(files_in_scope(target), timedelta(days=1))
        if each.severity is Severity.BLOCK
    }
    assert codes == {"target.delete-files"}


def test_a_row_that_is_masked_after_a_decision_is_a_conflict_and_stays_masked(
    create: Create, spark: SparkSession
) -> None:
    """Its file is the same before and after: only the deletion vector tells."""
    target = create(properties="'delta.enableDeletionVectors' = 'true'")
    name, net = target.facts().identity.name, staged(target)

    def delete(number: int) -> None:
        spark.sql(f"DELETE FROM {name} WHERE id = {number}")

    with at_point("publish.before-commit", lambda: delete(1)), pytest.raises(Conflict):
        publish(target, net)
    moved = target.movement(net.base, SCOPE)
    assert moved.files.has_deletes
    assert not moved.only_compaction
    assert [each.path for each in moved.added] == [each.path for each in moved.removed] != []
    assert {row[0] for row in rows(target)} == set(range(12)) - {1}

    spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF {net.base}")
    change = publish(target, net)
    with at_point("undo.before-commit", lambda: delete(4)), pytest.raises(Conflict):
        undo(target, net, change)
    assert files_in_scope(target).has_deletes
    assert {row[0] for row in rows(target)} == set(range(12)) - {4}


def test_a_released_stage_loses_what_nobody_needs_and_a_sweep_takes_the_rest_after_retention(
    create: Create, spark: SparkSession, tmp_path: Path
) -> None:
    """Published files stay while the table or its retention names them, then go; live rows never do."""
    target = create()
    net = staged(target)
    publish(target, net)
    stage = stage_of("r1", net.base)
    folder = next(tmp_path.rglob("_backcast"))
    assert target.forget(Forget(refs=(stage.branch, stage.base_tag), versions=(), branch=stage.branch)) == 0
    assert not list(folder.rglob("_delta_log"))
    published, version = rows(target), target.facts().version
    for file in folder.rglob("*.parquet"):
        os.utime(file, (0, 0))
    name = target.facts().identity.name
    _keep_removed_files(target, "0 seconds")
    assert target.sweep() == 0, "published files are the table's"
    assert rows(target) == published
    _keep_removed_files(target, "7 days")
    spark.sql(f"DELETE FROM {name} WHERE day = DATE'2026-01-02'")
    assert target.sweep() == 0, "old files that were removed just now"
    assert Counter(map(tuple, target.read(version, Predicate()).collect())) == published
    _keep_removed_files(target, "0 seconds")
    assert target.sweep() == len(net.added)
    assert not list(folder.rglob("*.parquet"))
    assert sum(rows(target).values()) == 8


def _keep_removed_files(target: DeltaTarget, how_long: str) -> None:
    properties = f"'delta.deletedFileRetentionDuration' = 'interval {how_long}'"
    target._handle.spark.sql(f"ALTER TABLE {target.facts().identity.name} SET TBLPROPERTIES ({properties})")


def test_a_chunk_of_whole_partitions_costs_one_job(create: Create, spark: SparkSession) -> None:
    """Delta by itself would read the log, the stage's state and its files in jobs of their own."""
    target, context = create(), spark.sparkContext
    stage = stage_of("r1", target.facts().version)
    new = spark.sql("SELECT id, DATE'2026-01-02' AS day, CAST(id AS DOUBLE) AS v FROM range(4)")
    context.setJobGroup("staging", "staging")
    try:
        target.open_stage(stage, SCOPE)
        commit = target.write(stage, StageWrite(("c1",), 1, SCOPE, exact=False), new)
        assert len(context.statusTracker().getJobIdsForGroup("staging")) == 1
    finally:
        context.setLocalProperty("spark.jobGroup.id", "")
    net = target.net_change(stage, commit.version, SCOPE)
    assert len(net.removed) == len(net.added) > 0
    assert target.read(commit.version, Predicate()).count() == 4


def test_two_processes_with_one_token_land_once_also_without_a_file(create: Create) -> None:
    """Both saw that it was not there, and nothing that they write tells them apart: only the fence does."""
    target, write = create(), StageWrite(("c1",), 1, SCOPE, exact=False)
    stage, handle, where = stage_of("r1", target.facts().version), target._handle, "day = DATE'2026-01-02'"
    target.open_stage(stage, SCOPE)
    here = stage_now(handle, stage)
    commit_files(handle, stage, write, here, [], [], where=where)
    with pytest.raises(Exception) as lost:  # noqa: PT011 - whatever pyspark makes of Delta's own
        commit_files(handle, stage, write, here, [], [], where=where)
    assert find_cause(lost.value, NOT_LANDED) is not None
    commit_files(handle, stage, write, stage_now(handle, stage), [], [], where=where)
    assert [each.token for each in target.history(stage)] == [1]


def test_a_discarded_stage_leaves_nothing(create: Create, tmp_path: Path) -> None:
    target = create()
    before, net = rows(target), staged(target)
    stage = stage_of("r1", net.base)
    assert target.forget(Forget(refs=(stage.branch, stage.base_tag), versions=(), branch=stage.branch)) == len(
        net.added
    )
    assert not list(next(tmp_path.rglob("_backcast")).iterdir())
    assert rows(target) == before
    assert target.history(stage) == ()


def test_a_plan_names_delta_tables_and_tells_pinned_reads_from_others(create: Create, spark: SparkSession) -> None:
    target = create()
    identity = target.facts().identity
    assert tables(target.read("1", SCOPE)) == ((identity.location,), (), False)
    assert tables(spark.sql(f"SELECT * FROM {identity.name}")) == ((identity.location,), (identity.location,), False)


def test_a_generated_partition_is_checked_when_the_stage_is_written(create: Create, spark: SparkSession) -> None:
    columns = "id BIGINT, day DATE GENERATED ALWAYS AS (CAST(at AS DATE)), v DOUBLE, at TIMESTAMP"
    target = create(columns, rows="SELECT *, CAST(d AS TIMESTAMP) FROM (" + ROWS.replace("INT)),", "INT)) AS d,") + ")")
    stage = stage_of("r1", target.facts().version)
    target.open_stage(stage, SCOPE)
    base = target.read(stage.base, SCOPE)
    wrong = base.selectExpr("id", "day", "v", "at + INTERVAL 3 DAYS AS at")
    with pytest.raises(ChunkFailed, match="Generated Column"):
        target.write(stage, StageWrite(("c1",), 1, SCOPE, exact=False), wrong)
    commit = target.write(
        stage, StageWrite(("c1",), 2, SCOPE, exact=False), base.selectExpr("id", "day", "-v AS v", "at")
    )
    before, net = rows(target), target.net_change(stage, commit.version, SCOPE)
    change = publish(target, net)
    assert sum(row[2] for row in rows(target).elements()) < sum(row[2] for row in before.elements())  # type: ignore[misc]
    undo(target, net, change)
    assert rows(target) == before


def test_readers_of_the_change_feed_see_old_rows_deleted_and_new_ones_inserted(
    create: Create, spark: SparkSession
) -> None:
    target = create(properties="'delta.enableChangeDataFeed' = 'true'")
    publish(target, staged(target))
    name, version = target.facts().identity.name, target.facts().version
    feed = spark.read.option("readChangeFeed", "true").option("startingVersion", str(version)).table(name)
    found = Counter(row[0] for row in feed.select("_change_type").collect())
    assert found == {"delete": 4, "insert": 4}


@pytest.mark.parametrize("way", ["exact files", "replaceWhere"])
def test_on_a_local_disk_commits_to_a_stage_wait_for_their_turn(
    create: Create, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes could land the same version there: Delta's log store looks first and renames then."""
    target = create()
    base = target.facts().version
    stage = stage_of("r1", base)
    target.open_stage(stage, SCOPE)
    new = target.read(base, SCOPE)
    seen: list[list[int]] = []

    @contextmanager
    def turn() -> Iterator[Rest]:
        seen.append([each.token for each in target.history(stage)])
        yield lambda _: None
        seen.append([each.token for each in target.history(stage)])

    if way == "replaceWhere":
        monkeypatch.setattr("backcast.targets.delta.replace._FEW", 0)
    target.write(stage, StageWrite(("c1",), 7, SCOPE, exact=False), new, turn)
    assert seen == [[], [7]]
    assert "target.local-log" in {each.code for each in target.findings(files_in_scope(target), timedelta(days=1))}
