"""The same restatement on a real standalone cluster: a master and two workers."""

from __future__ import annotations

import json
from pathlib import Path

from backcast.testing.cluster import standalone_cluster
from backcast.testing.shop import Shop
from tests.cheap import JAVA, cheap_java
from tests.crash.iceberg_lake import IcebergLake
from tests.crash.lake import NEW, OLD, OUTSIDE
from tests.crash.process import RealLife, SparkProcess

_CONF = {
    "spark.executor.memory": "800m",
    "spark.sql.shuffle.partitions": "2",
    "spark.executor.extraJavaOptions": JAVA,
}


def test_a_cluster_runs_publishes_and_undoes_the_same_restatement(tmp_path: Path) -> None:
    """Connectors and project code reach the executors; the driver commits, and the result is the local one."""
    lake = IcebergLake(tmp_path / "lake", "shop")
    lake.create()
    shop = Shop(tmp_path / "project", "lake.shop", None)  # type: ignore[arg-type]  # its process brings its own
    shop.write(lake.root, undo_window="7d")
    life = RealLife(shop, lake)
    with standalone_cluster(tmp_path / "cluster") as master:
        _point_at(shop, master)
        with SparkProcess(shop.root, settings=cheap_java()) as process:
            for verb in ("plan", "run", "publish"):
                life.call(process, verb)
            assert lake.rows() == OUTSIDE + NEW
            executors = list((tmp_path / "cluster").glob("work-*/*/*/stderr"))
            assert len(executors) >= 2, "both workers had an executor"
            life.call(process, "undo")
        assert lake.rows() == OUTSIDE + OLD
    lake.close()


def _point_at(shop: Shop, master: str) -> None:
    path = shop.root / "backcast.yaml"
    conf = json.dumps(_CONF)
    path.write_text(
        path.read_text().replace('spark: {master: "local[2]"}', f'spark: {{master: "{master}", conf: {conf}}}')
    )
    assert master in path.read_text()
