"""The same restatement on a real standalone cluster: a master and two workers, from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from backcast.testing.cluster import standalone_cluster
from backcast.testing.shop import Shop
from tests.crash.iceberg_lake import IcebergLake
from tests.crash.lake import NEW, OLD, OUTSIDE, SCOPE

_MEMORY = {"spark.executor.memory": "800m", "spark.sql.shuffle.partitions": "2"}


def test_a_cluster_runs_publishes_and_undoes_the_same_restatement(tmp_path: Path) -> None:
    """Connectors and project code reach the executors; the driver commits, and the result is the local one."""
    lake = IcebergLake(tmp_path / "lake", "shop")
    lake.create()
    shop = Shop(tmp_path / "project", "lake.shop", None)  # type: ignore[arg-type]  # its processes bring their own
    shop.write(lake.root, undo_window="7d")
    with standalone_cluster(tmp_path / "cluster") as master:
        _point_at(shop, master)
        start, end = SCOPE
        published = _call(shop, "backfill", "revenue", "--from", start, "--to", end, "--yes")
        assert lake.rows() == OUTSIDE + NEW
        executors = list((tmp_path / "cluster").glob("work-*/*/*/stderr"))
        assert len(executors) >= 2, "both workers had an executor"
        _call(shop, "undo", str(published["run_id"]))
        assert lake.rows() == OUTSIDE + OLD
    lake.close()


def _point_at(shop: Shop, master: str) -> None:
    path = shop.root / "backcast.yaml"
    conf = json.dumps(_MEMORY)
    path.write_text(
        path.read_text().replace(
            'spark: {master: "local[2]"}', f'spark: {{master: "{master}", driver_memory: 1g, conf: {conf}}}'
        )
    )
    assert master in path.read_text()


def _call(shop: Shop, *arguments: str) -> dict[str, object]:
    command = [sys.executable, "-m", "backcast", *arguments, "--json"]
    done = subprocess.run(command, cwd=shop.root, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer
