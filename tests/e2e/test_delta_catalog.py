"""Delta tables of a Hive metastore: found by name, restated, taken back and released, no name left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

from backcast.testing.metastore import hive_metastore
from tests.cheap import cheap_java

if TYPE_CHECKING:
    import pytest

_PROJECT = """\
name: shop
spark: {master: "local[2]", driver_memory: 1g, conf: {spark.sql.shuffle.partitions: "2"}}
catalogs:
  spark_catalog: {type: delta, warehouse: lake/warehouse, uri: "${METASTORE}"}
datasets:
  sales: {table: spark_catalog.shop.sales, time: {column: day, kind: date}}
  revenue: {table: spark_catalog.shop.revenue, time: {column: day, kind: date}}
pipelines:
  revenue: {sql: revenue.sql, version: 1.0.0, inputs: {sales: sales}, output: revenue,
    publish: {mode: replace, undo_window: 0s}}
"""
_SEED = """\
spark.sql("CREATE SCHEMA shop")
spark.sql("CREATE TABLE shop.sales (day DATE, amount BIGINT) USING delta")
spark.sql("INSERT INTO shop.sales SELECT date_add(DATE'2026-01-01', CAST(id % 3 AS INT)), id FROM range(9)")
spark.sql("CREATE TABLE shop.revenue (day DATE, amount BIGINT) USING delta PARTITIONED BY (day)")
spark.sql("INSERT INTO shop.revenue SELECT day, 0L FROM shop.sales GROUP BY day")
"""
_RESTATE = """\
with in_process(control):
    code = dispatch(["backfill", "revenue", "--from", "2026-01-02", "--to", "2026-01-03", "--yes"])
def rows():
    return sorted([str(row[0]), row[1]] for row in spark.sql("SELECT day, amount FROM shop.revenue").collect())
restated = rows()
spark.sql("INSERT INTO shop.revenue VALUES (DATE'2026-01-02', 5)")
control.undo(control.list()[0].run_id)
released = len(control.gc().items)
names = sorted(row[1] for row in spark.sql("SHOW TABLES IN shop").collect())
print(json.dumps({"code": code, "restated": restated, "undone": rows(), "released": released, "names": names}))
"""


def test_a_table_of_a_metastore_is_restated_and_taken_back_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another process than the one that made it: what they share is the metastore, which no stage is known to."""
    (tmp_path / "backcast.yaml").write_text(_PROJECT)
    (tmp_path / "revenue.sql").write_text("SELECT day, sum(amount) AS amount FROM sales GROUP BY day")
    with hive_metastore(tmp_path / "metastore") as address:
        monkeypatch.setenv("METASTORE", address)
        _script(tmp_path, _SEED)
        told = _script(tmp_path, _RESTATE).splitlines()[-1]
    assert json.loads(told) == {
        "code": 0,
        "restated": [["2026-01-01", 0], ["2026-01-02", 12], ["2026-01-03", 0]],
        "undone": [["2026-01-01", 0], ["2026-01-02", 0], ["2026-01-02", 5], ["2026-01-03", 0]],
        "released": 1,
        "names": ["revenue", "sales"],
    }


def _script(root: Path, body: str) -> str:
    """What the script prints with the project's own session as `spark`."""
    head = dedent(
        """\
        import json
        import backcast
        from backcast.cli.dispatch import dispatch
        from backcast.demo.shell import in_process
        control = backcast.open(".")
        spark = control.world.spark()
        """
    )
    command, environment = [sys.executable, "-c", head + body], {**os.environ, **cheap_java()}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
