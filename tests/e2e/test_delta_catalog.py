"""Delta tables of Spark's own catalog: found by name, restated from the command line, no name left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

_PROJECT = """\
name: shop
spark: {master: "local[2]", driver_memory: 1g, conf: {spark.sql.shuffle.partitions: "2"}}
catalogs:
  spark_catalog: {type: delta, warehouse: lake/warehouse}
datasets:
  sales: {table: spark_catalog.shop.sales, time: {column: day, kind: date}}
  revenue: {table: spark_catalog.shop.revenue, time: {column: day, kind: date}}
pipelines:
  revenue: {sql: revenue.sql, version: 1.0.0, inputs: {sales: sales}, output: revenue}
"""
_SEED = """\
spark.sql("CREATE SCHEMA shop")
spark.sql("CREATE TABLE shop.sales (day DATE, amount BIGINT) USING delta")
spark.sql("INSERT INTO shop.sales SELECT date_add(DATE'2026-01-01', CAST(id % 3 AS INT)), id FROM range(9)")
spark.sql("CREATE TABLE shop.revenue (day DATE, amount BIGINT) USING delta PARTITIONED BY (day)")
spark.sql("INSERT INTO shop.revenue SELECT day, 0L FROM shop.sales GROUP BY day")
"""
_LOOK = """\
rows = {str(row[0]): row[1] for row in spark.sql("SELECT day, amount FROM shop.revenue").collect()}
names = sorted(row[1] for row in spark.sql("SHOW TABLES IN shop").collect())
print(json.dumps({"rows": rows, "names": names}))
"""


def test_a_table_of_sparks_own_catalog_is_restated_by_name(tmp_path: Path) -> None:
    (tmp_path / "backcast.yaml").write_text(_PROJECT)
    (tmp_path / "revenue.sql").write_text("SELECT day, sum(amount) AS amount FROM sales GROUP BY day")
    _script(tmp_path, _SEED)
    command = [sys.executable, "-m", "backcast"]
    window = ["--from", "2026-01-02", "--to", "2026-01-03"]
    _run(tmp_path, *command, "backfill", "revenue", *window, "--yes")
    assert json.loads(_script(tmp_path, _LOOK)) == {
        "rows": {"2026-01-01": 0, "2026-01-02": 12, "2026-01-03": 0},
        "names": ["revenue", "sales"],
    }


def _script(root: Path, body: str) -> str:
    """What the script prints with the project's own session as `spark`."""
    head = dedent(
        """\
        import json
        from backcast.project.wiring import open_world
        spark = open_world(".").spark()
        """
    )
    return _run(root, sys.executable, "-c", head + body)


def _run(root: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
