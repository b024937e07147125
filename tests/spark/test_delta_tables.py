"""Delta tables of every kind: each feature is published and undone, or refused by the plan with the reason."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from backcast.errors import ChunkFailed, Drifted
from backcast.model.column import TimeColumn, TimeKind
from backcast.model.finding import Severity
from backcast.model.scope import Predicate, TimeClause
from backcast.model.stage import publish_fence, stage_of, undo_fence
from backcast.model.table import Change, FileList, Forget, Merged, Merging, NetChange, PublishMode, StageWrite
from backcast.ports import Rest
from backcast.publish.rewriting import described_by
from backcast.spark.gateway import find_cause
from backcast.spark.inspection import tables
from backcast.targets.delta.exact import commit_files, stage_now
from backcast.targets.delta.publish import NOT_LANDED
from backcast.targets.delta.target import DeltaTarget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = "id BIGINT, day DATE, v DOUBLE"
ROWS = "SELECT id, date_add(DATE'2026-01-01', CAST(id % 3 AS INT)), CAST(id AS DOUBLE) FROM range(12)"
SCOPE = Predicate(
    clauses=(TimeClause(time=TimeColumn(column="day", kind=TimeKind.DATE), ranges=(("2026-01-02", "2026-01-03"),)),)
)
Create = Callable[..., DeltaTarget]


@pytest.fixture
def create(spark: SparkSession, tmp_path: Path) -> Create:
    """A table of three days with four rows each, in a folder whose name must be encoded."""

    def make(
        columns: str = COLUMNS, layout: str = "PARTITIONED BY (day)", properties: str = "", rows: str = ROWS
    ) -> DeltaTarget:
        name = f"delta.`{tmp_path}/a b%/t=1`"
        tail = f"TBLPROPERTIES ({properties})" if properties else ""
        spark.sql(f"CREATE TABLE {name} ({columns}) USING delta {layout} {tail}")
        spark.sql(f"INSERT INTO {name} {rows}")
        return DeltaTarget(spark, name)

    return make


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


@pytest.mark.parametrize(
    ("columns", "layout", "properties"),
    [
        pytest.param(COLUMNS, "PARTITIONED BY (day)", "", id="partitioned"),
        pytest.param(COLUMNS, "", "", id="unpartitioned"),
        pytest.param(COLUMNS, "CLUSTER BY (day)", "", id="clustered"),
        pytest.param(
            COLUMNS, "PARTITIONED BY (day)", "'delta.columnMapping.mode' = 'name'", id="column mapping by name"
        ),
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
    assert not [each for each in target.findings(_files(target), timedelta(days=7)) if each.severity is Severity.BLOCK]
    net = staged(target, exact=not layout.startswith("PARTITIONED"))
    assert rows(target) == before
    files = set(tmp_path.rglob("*.parquet"))
    change = publish(target, net)
    assert rows(target) == Counter({(a, b, c * 10 if b.day == 2 else c): n for (a, b, c), n in before.items()})  # type: ignore[attr-defined, operator]
    undo(target, net, change)
    assert rows(target) == before
    assert set(tmp_path.rglob("*.parquet")) == files
    assert target.facts().properties == settings


def _files(target: DeltaTarget) -> FileList:
    return target.files(target.facts().version, SCOPE)


@pytest.mark.parametrize(
    ("properties", "code"),
    [
        ("'delta.appendOnly' = 'true'", "target.property"),
        ("'delta.enableRowTracking' = 'true'", "target.feature"),
        ("'delta.feature.rowTracking' = 'supported'", "target.feature"),
        ("'delta.setTransactionRetentionDuration' = 'interval 1 days'", "target.transaction-retention"),
        ("'delta.enableTypeWidening' = 'true'", "target.feature"),
    ],
)
def test_what_is_not_proven_is_refused_with_the_reason(create: Create, properties: str, code: str) -> None:
    found = {each.code: each for each in create(properties=properties).findings(FileList(None, ()), timedelta(days=1))}
    assert found[code].severity is Severity.BLOCK
    assert found[code].remedy


def test_deletion_vectors_in_scope_are_refused_and_elsewhere_they_are_not(create: Create, spark: SparkSession) -> None:
    target = create(properties="'delta.enableDeletionVectors' = 'true'")
    name = target.facts().identity.name
    spark.sql(f"DELETE FROM {name} WHERE id = 0")
    assert not _files(target).has_deletes
    spark.sql(f"DELETE FROM {name} WHERE id = 1")
    codes = {
        each.code for each in target.findings(_files(target), timedelta(days=1)) if each.severity is Severity.BLOCK
    }
    assert codes == {"target.delete-files"}


def test_an_undo_is_promised_only_as_long_as_removed_files_are_kept(create: Create) -> None:
    target = create(properties="'delta.deletedFileRetentionDuration' = 'interval 2 days'")
    assert target.facts().removed_files_kept == timedelta(days=2)
    warned = {each.code: each.reason for each in target.findings(_files(target), timedelta(days=7))}
    assert "2 days" in warned["target.retention"]
    assert "target.retention" not in {each.code for each in target.findings(_files(target), timedelta(hours=1))}


def test_an_undo_and_an_input_are_promised_only_as_long_as_the_log_is_kept(create: Create, tmp_path: Path) -> None:
    """What is in a version only the log says. Newer Delta wants it kept as long as files, older ones did not ask."""
    target = create(properties="'delta.logRetentionDuration' = 'interval 33 days'")
    first = next(tmp_path.rglob("00000000000000000000.json"))
    first.write_text(first.read_text().replace("interval 33 days", "interval 1 day"))
    for summed in first.parent.glob("*.crc"):
        summed.unlink()
    for hidden in first.parent.glob(".*.crc"):
        hidden.unlink()
    target._handle.jvm.forget_log(target._handle.root.path)
    target = DeltaTarget(target._handle.spark, target._handle.name)
    facts = target.facts()
    assert facts.removed_files_kept == timedelta(days=1)
    assert facts.survives_until is not None
    assert facts.survives_until <= datetime.now(UTC) + timedelta(days=1)
    warned = {each.code: each for each in target.findings(_files(target), timedelta(days=7))}
    assert "24 hours" in warned["target.retention"].reason
    assert "delta.logRetentionDuration" in warned["target.retention"].remedy


def test_a_base_whose_log_was_cleaned_right_after_the_publish_can_be_undone(
    create: Create, spark: SparkSession, tmp_path: Path
) -> None:
    """Delta keeps a commit by its own age, not since when it is no longer the newest: a table that nobody wrote to for
    a month loses its base with the next checkpoint.
    """
    target = create(properties="'delta.checkpointInterval' = '2'")
    before, net = rows(target), staged(target)
    log = next(tmp_path.rglob("t=1")) / "_delta_log"
    month_ago = (datetime.now(UTC) - timedelta(days=31)).timestamp()
    for each in (*log.glob("*.json"), *log.glob("*.crc")):
        os.utime(each, (month_ago, month_ago))
    change = publish(target, net)
    name = target.facts().identity.name
    spark.sql(f"INSERT INTO {name} VALUES (100, DATE'2026-02-01', 1)")
    spark.sql(f"INSERT INTO {name} VALUES (101, DATE'2026-02-01', 1)")
    spark.sql(f"INSERT INTO {name} VALUES (102, DATE'2026-02-01', 1)")
    fresh = DeltaTarget(spark, name)
    with pytest.raises(Drifted, match="is gone"):
        fresh.files(net.base, SCOPE)
    published = SimpleNamespace(base=net.base, head=net.base, staged=net.staged, removed=tuple(change.remove))
    described = described_by(SimpleNamespace(target=fresh, reach=SCOPE), published)  # type: ignore[arg-type]
    assert described == net.staged
    undo(fresh, replace(net, base=described), change)
    assert rows(fresh) == before + Counter((number, date(2026, 2, 1), 1.0) for number in (100, 101, 102))


def test_rows_are_merged_into_a_table_with_deletion_vectors_and_back(create: Create, spark: SparkSession) -> None:
    """One on a file that the merge writes anew, and one on a file that it leaves: no deleted row comes back."""
    target = create(properties="'delta.enableDeletionVectors' = 'true'")
    name = target.facts().identity.name
    spark.sql(f"DELETE FROM {name} WHERE id IN (1, 2)")
    before = rows(target)
    assert sum(file.deletes for file in target.files(target.facts().version, Predicate()).files) == 2
    stage = stage_of("r1", target.facts().version)
    target.open_stage(stage)
    news = spark.sql("SELECT CAST(4 AS BIGINT) AS id, DATE'2026-01-02' AS day, 40.0D AS v, false AS gone")
    merging = Merging(key=("id",), version="v", deleted="gone")
    write = StageWrite(("c1",), 1, Predicate(), exact=False, mode=PublishMode.MERGE, merging=merging)
    commit = target.write(stage, write, news)
    assert commit.merged == Merged(replaced=1)
    net = target.net_change(stage, commit.version, Predicate())
    change = publish(target, net)
    assert rows(target) == before - Counter([(4, date(2026, 1, 2), 4.0)]) + Counter([(4, date(2026, 1, 2), 40.0)])
    undo(target, replace(net, base=net.staged), change)
    assert rows(target) == before
    people = spark.newSession()
    people.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    people.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")
    people.sql(f"VACUUM {name} RETAIN 0 HOURS")
    assert rows(DeltaTarget(spark, name)) == before, "the vectors that came back are the table's own"


def test_a_released_stage_loses_what_nobody_needs_and_a_sweep_takes_the_rest_after_retention(
    create: Create, spark: SparkSession, tmp_path: Path
) -> None:
    """Published files stay while the table or its retention names them, then go; live rows never do."""
    target = create(properties="'delta.deletedFileRetentionDuration' = 'interval 0 seconds'")
    net = staged(target)
    publish(target, net)
    stage = stage_of("r1", net.base)
    folder = next(tmp_path.rglob("_backcast"))
    assert target.forget(Forget(refs=(stage.branch, stage.base_tag), versions=(), branch=stage.branch)) == 0
    assert not list(folder.rglob("_delta_log"))
    published = rows(target)
    assert target.sweep() == 0, "published files are the table's"
    assert rows(target) == published
    name = target.facts().identity.name
    spark.sql(f"DELETE FROM {name} WHERE day = DATE'2026-01-02'")
    assert target.sweep() == len(net.added)
    assert not list(folder.rglob("*.parquet"))
    assert sum(rows(target).values()) == 8


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
    assert "target.local-log" in {each.code for each in target.findings(_files(target), timedelta(days=1))}
