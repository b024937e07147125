"""The project that `backcast init` writes works as its README says, from the seed to the corrected table."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from backcast.project.init import init_project
from tests.cheap import cheap_java

WITH_BUG, CORRECTED = "260434.78", "197521.26"
STORY = """\
import json, sys
sys.path.insert(0, ".")
import backcast
from backcast.model.request import Request
from seed import seed

control = backcast.open(".")
spark = control.world.spark()

def total():
    return str(spark.sql("SELECT sum(revenue) FROM lake.shop.daily").first()[0])

seed(spark)
story = [total()]
for pipeline in ("daily", "daily_sql"):
    run = control.backfill(Request(pipeline=pipeline, start="2026-01-01", end="2026-02-01", reason="refunds")).run_id
    story.append(total())
    control.undo(run)
    story.append(total())
story.append([probe.name for probe in control.doctor() if not probe.ok])
control.world.close()
print(json.dumps(story))
"""


def test_the_sample_is_restated_in_python_with_a_udf_and_in_sql_and_taken_back(tmp_path: Path) -> None:
    """The Python pipeline calls a UDF of another project module, which Spark's workers must be able to import."""
    root = init_project(tmp_path / "shop").root
    (root / "pipelines/signs.py").write_text(
        "from pyspark.sql.functions import udf\nfrom pyspark.sql.types import IntegerType\n\n"
        "@udf(IntegerType())\ndef sign(kind):\n    return -1 if kind == 'refund' else 1\n"
    )
    daily = root / "pipelines/daily.py"
    old = 'F.when(F.col("kind") == "refund", -F.col("amount")).otherwise(F.col("amount"))'
    assert old in daily.read_text()
    text = daily.read_text().replace(old, 'sign("kind") * F.col("amount")')
    daily.write_text(text.replace("import backcast\n", "import backcast\nfrom pipelines.signs import sign\n"))
    environment = {**os.environ, **cheap_java(), "BACKCAST__SPARK__MASTER": "local[2]"}
    command = [sys.executable, "-c", STORY]
    answer = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr[-3000:]
    expected = f'["{WITH_BUG}", "{CORRECTED}", "{WITH_BUG}", "{CORRECTED}", "{WITH_BUG}", []]'
    assert answer.stdout.splitlines()[-1] == expected
