"""Forgetting on Iceberg, beyond the contract of targets: exactly the snapshots it is told, and their files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backcast.errors import Refused
from backcast.model.table import Forget
from backcast.testing.target_iceberg import IcebergLab, IcebergTable
from backcast.testing.target_moves import days, frame, open_stage, write
from tests.spark.iceberg_kit import snapshot_ids

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def on_disk(table: IcebergTable) -> set[str]:
    """Names of all data and metadata files of the table, but for the JSON of its versions."""
    return {path.name for path in table.root().rglob("*") if path.suffix in (".parquet", ".avro")}


def test_forget_takes_exactly_what_it_is_told(spark: SparkSession, namespace: str) -> None:
    """Old snapshots of others survive whatever their age, superseded files go, and repeating it does nothing."""
    table = IcebergLab(spark, namespace).three_days()
    table.set_property("history.expire.max-snapshot-age-ms", "1")
    table.set_property("history.expire.min-snapshots-to-keep", "1")
    target = table.target()
    table.append((900, 3, 1.0))
    spark.sql(f"ALTER TABLE {table.name} CREATE TAG theirs AS OF VERSION {target.facts().version} RETAIN 1 DAYS")
    others, files = snapshot_ids(table), on_disk(table)
    stage = open_stage(target)
    for token in (1, 2):
        commit = write(target, stage, days(1, 1), frame(spark, [(0, 1, 5.0)]), token=token)
    head = target.facts().version
    assert head is not None
    wanted = Forget(refs=(stage.base_tag, "never-there"), versions=(commit.version, head, "12345"), branch=stage.branch)
    with pytest.raises(Refused):
        target.forget(Forget(refs=("main",), versions=(), branch=None))
    gone = target.forget(wanted)
    assert snapshot_ids(table) == others
    assert table.traces() == {"theirs"}
    assert on_disk(table) == files
    assert gone >= 4
    assert target.forget(wanted) == 0

    second = open_stage(target, "r2")
    write(target, second, days(1, 1), frame(spark, [(0, 1, 5.0)]))
    target.forget(Forget(refs=(second.branch, second.base_tag), versions=(), branch=None))
    assert snapshot_ids(table) == others, "a branch among the refs takes its snapshots with it"
    assert len(table.values()) == 13


def test_a_run_is_forgotten_beside_delete_files_and_leaves_those_alone(spark: SparkSession, namespace: str) -> None:
    """Somebody deletes rows merge-on-read while a stage lives: their delete files are not ours, and stay."""
    table = IcebergLab(spark, namespace).three_days()
    target = table.target()
    table.set_property("write.delete.mode", "merge-on-read")
    table.delete("id = 11")
    stage = open_stage(target)
    write(target, stage, days(1, 1), frame(spark, [(0, 1, 5.0)]))
    table.delete("id = 10")
    files, left = on_disk(table), table.values()
    assert target.forget(Forget(refs=(stage.branch, stage.base_tag), versions=(), branch=stage.branch)) > 0
    assert on_disk(table) < files
    assert table.values() == left
    assert len(left) == 10
