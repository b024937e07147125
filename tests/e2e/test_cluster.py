"""The same restatement on a real standalone cluster: a master and two workers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from backcast.model.pipeline import TableFormat
from backcast.testing.cluster import standalone_cluster
from backcast.testing.shop import Shop
from tests.cheap import JAVA, cheap_java
from tests.crash.lake import NEW, OLD, OUTSIDE
from tests.crash.lakes import filled_lake
from tests.crash.process import RealLife, SparkProcess

_CONF = {
    "spark.executor.memory": "800m",
    "spark.sql.shuffle.partitions": "2",
    "spark.executor.extraJavaOptions": JAVA,
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """One for both formats."""
    folder = tmp_path_factory.mktemp("cluster")
    with standalone_cluster(folder) as master:
        yield folder, master


@pytest.mark.parametrize("table_format", TableFormat)
def test_a_cluster_runs_publishes_and_undoes_the_same_restatement(
    tmp_path: Path, cluster: tuple[Path, str], table_format: TableFormat
) -> None:
    """Connectors and the project's own functions reach executors that know nothing of its folder; the driver commits,
    and the result is the local one.
    """
    folder, master = cluster
    shop = Shop(tmp_path / "project", "lake.shop", None, table_format)  # type: ignore[arg-type]  # its process brings its own
    lake = filled_lake(table_format, shop.root, tmp_path / "lake", "shop")
    shop.write(tmp_path / "lake", undo_window="7d")
    _call_a_function_of_a_second_module(shop)
    life = RealLife(shop, lake)
    _point_at(shop, master)
    before = _executors(folder)
    with SparkProcess(shop.root, settings={**cheap_java(), "PYSPARK_PYTHON": sys.executable}) as process:
        for verb in ("plan", "run", "publish"):
            life.call(process, verb)
        assert lake.rows() == OUTSIDE + NEW
        assert len(_executors(folder) - before) >= 2, "both workers had an executor"
        life.call(process, "undo")
    assert lake.rows() == OUTSIDE + OLD
    lake.close()


def _executors(folder: Path) -> set[Path]:
    return set(folder.glob("work-*/*/*/stderr"))


def _call_a_function_of_a_second_module(shop: Shop) -> None:
    code = shop.root / "pipelines" / "revenue.py"
    (code.parent / "names.py").write_text("def same(name):\n    return name\n")
    text = code.read_text().replace("import backcast\n", "import backcast\nfrom pipelines.names import same\n")
    named = 'sales = inputs["sales"].withColumn("shop", F.udf(same)("shop"))'
    code.write_text(text.replace('sales = inputs["sales"]', named))


def _point_at(shop: Shop, master: str) -> None:
    path = shop.root / "backcast.yaml"
    conf = json.dumps(_CONF)
    path.write_text(
        path.read_text().replace('spark: {master: "local[2]"}', f'spark: {{master: "{master}", conf: {conf}}}')
    )
    assert master in path.read_text()
