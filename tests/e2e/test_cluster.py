"""The same restatement, and a replay of a stream, on a real standalone cluster: a master and two workers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.model.pipeline import TableFormat
from backcast.model.states import RunState
from backcast.testing.cluster import standalone_cluster
from backcast.testing.shop import Shop
from tests.cheap import JAVA, cheap_java
from tests.crash.lake import NEW, OLD, OUTSIDE
from tests.crash.lakes import filled_lake
from tests.crash.process import RealLife, SparkProcess
from tests.e2e.test_stream_replay import Shop as StreamShop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.testing.kafka import KafkaBroker

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


def test_a_cluster_replays_a_window_of_a_stream_that_goes_on_beside_it_elsewhere(
    tmp_path: Path,
    cluster: tuple[Path, str],
    spark: SparkSession,
    broker: KafkaBroker,
    namespace: str,
    lake_root: Path,
) -> None:
    """The stream's query has a session of its own, and its state is read where it is. The folder must be shared."""
    _, master = cluster
    shop = StreamShop(tmp_path, spark, broker, f"{namespace}.hourly", lake_root)
    shop.send([number / 6 for number in range(60)], 0)
    shop.stream()
    before = shop.hours()
    shop.deploy("10")
    config = tmp_path / "backcast.yaml"
    told = f'spark: {{master: "{master}", shared: true, conf: {json.dumps(_CONF)}}}'
    config.write_text(config.read_text().replace('spark: {master: "local[2]"}', told))
    environ = {**cheap_java(topics=True), "PYSPARK_PYTHON": sys.executable}
    with SparkProcess(tmp_path, settings=environ) as process:
        run_id = process.call("plan", request=shop.request().as_json(), record=True)["run_id"]
        shop.send([10 + number / 6 for number in range(12)], 60)
        shop.stream()
        assert process.call("run", run_id=run_id)["state"] == RunState.ACCEPTED
        process.call("publish", run_id=run_id)
    after = shop.hours()
    assert {hour: after[hour] for hour in before} == {**before, **dict.fromkeys((4, 5, 6, 7), (6, "60.00"))}
    assert after.keys() - before.keys() == {9, 10}, "what the stream wrote meanwhile"


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
