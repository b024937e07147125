"""Every promise can be measured: at sizes that say nothing about time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from bench import ledger, publish, run, start
from bench.lake import Lake
from bench.machine import facts
from bench.promise import QUICK, Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_every_promise_is_measured_and_what_is_no_ratio_is_held(
    tmp_path: Path, spark: SparkSession, lake_root: Path
) -> None:
    """Publish and undo write no data file, each chunk is claimed once, listing is one indexed query; and the job by
    hand writes the same rows as the run, which `run.measure` asserts itself.
    """
    lake = Lake(tmp_path, spark, lake_root)
    results: list[Result] = [
        *start.measure(QUICK),
        *ledger.measure(tmp_path, QUICK),
        *run.measure(lake, QUICK),
        *publish.measure_rows(lake, QUICK),
        *publish.measure_files(lake, QUICK),
        *publish.measure_others(lake, QUICK),
    ]
    exact = [result for result in results if not result.target.startswith("<=")]
    assert [result.target for result in exact] == ["each once", "one indexed query", "each once", "0"]
    assert all(result.held for result in exact), exact
    assert len(results) - len(exact) == 9
    assert all(result.numbers["samples"] for result in results if result not in exact)
    assert json.loads(json.dumps({"machine": facts(), "results": [result.document() for result in results]}))
