"""A table whose address is not of a disk: whatever the scheme, each path leads back to the same file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.model.stage import stage_of
from backcast.model.table import Forget
from backcast.targets.delta.target import DeltaTarget
from tests.spark.delta_kit import COLUMNS, ROWS, publish, rows, staged, undo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_table_under_another_scheme_is_restated_taken_back_and_swept(spark: SparkSession, tmp_path: Path) -> None:
    """Hadoop's own views of other file systems, which need no server."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.viewfs.mounttable.elsewhere.link./tables", tmp_path.as_uri())
    name = "delta.`viewfs://elsewhere/tables/a b=c`"
    removed = "TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 0 seconds')"
    spark.sql(f"CREATE TABLE {name} ({COLUMNS}) USING delta PARTITIONED BY (day) {removed}")
    spark.sql(f"INSERT INTO {name} {ROWS}")
    target = DeltaTarget(spark, name)
    before, net = rows(target), staged(target)
    change = publish(target, net)
    assert all(path.startswith("viewfs://elsewhere/tables/a b=c/") for path in change.add | change.remove)
    assert rows(target) == Counter({(a, b, c * 10 if b.day == 2 else c): n for (a, b, c), n in before.items()})  # type: ignore[attr-defined, operator]
    assert target.missing(change.remove | {"viewfs://elsewhere/tables/a b=c/none"}) == {
        "viewfs://elsewhere/tables/a b=c/none"
    }
    undo(target, net, change)
    assert rows(target) == before
    stage = stage_of("r1", net.base)
    assert target.forget(Forget(refs=(stage.branch,), versions=(), branch=stage.branch)) == len(net.added)
    assert target.sweep() == 0
    assert not [*(tmp_path / "a b=c" / "_backcast").iterdir()]
