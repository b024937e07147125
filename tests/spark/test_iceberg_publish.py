"""Publish on Iceberg, beyond the contract of targets: what its snapshot says, and which errors are certain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError

from backcast.errors import Conflict, OutcomeUnknown
from backcast.spark.iceberg.handle import TableHandle
from backcast.targets.iceberg.publish import _refusals
from backcast.testing.target_iceberg import IcebergLab
from backcast.testing.target_moves import days, decided, publish, restated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_snapshot_of_a_publish_names_it_and_its_files_have_their_bounds(
    spark: SparkSession, namespace: str
) -> None:
    table = IcebergLab(spark, namespace).three_days()
    target = table.target()
    _, net = restated(target, days(1, 1))
    publish(target, net, days(1, 1))
    summary = table.java().currentSnapshot().summary()
    assert summary.get("backcast.fence") == "pub-1"
    assert summary.get("added-data-files") == "1"
    files = spark.sql(f"SELECT file_path, readable_metrics.v.upper_bound AS top FROM {table.name}.files").collect()
    published = {f.path for f in net.added}
    assert {row.top for row in files if row.file_path in published} == {90.0}
    assert len(files) == 3


def test_only_a_certain_refusal_counts_as_not_landed(spark: SparkSession, namespace: str) -> None:
    """An unknown state stays unknown, also when a lost race caused it; so does an error of the catalog's database."""
    table = IcebergLab(spark, namespace).three_days()
    target = table.target()
    _, net = restated(target, days(1, 1))
    change = decided(target, net, days(1, 1))
    handle = TableHandle(spark, table.name)
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
