"""What a Delta table forgets, masks and keeps: an undo is promised, and done, by what is there."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from backcast.errors import Drifted
from backcast.model.scope import Predicate
from backcast.model.stage import stage_of
from backcast.model.table import Merged, Merging, PublishMode, StageWrite
from backcast.publish.rewriting import described_by
from backcast.targets.delta.target import DeltaTarget
from tests.spark.delta_kit import SCOPE, Create, files_in_scope, publish, rows, staged, undo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_an_undo_is_promised_only_as_long_as_removed_files_are_kept(create: Create) -> None:
    target = create(properties="'delta.deletedFileRetentionDuration' = 'interval 2 days'")
    assert target.facts().removed_files_kept == timedelta(days=2)
    warned = {each.code: each.reason for each in target.findings(files_in_scope(target), timedelta(days=7))}
    assert "2 days" in warned["target.retention"]
    assert "target.retention" not in {each.code for each in target.findings(files_in_scope(target), timedelta(hours=1))}


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
    warned = {each.code: each for each in target.findings(files_in_scope(target), timedelta(days=7))}
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
