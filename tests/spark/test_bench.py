"""Every promise can be measured, on both formats: at sizes that say nothing about time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.model.pipeline import TableFormat
from bench import chunks, diff, kafka, ledger, publish, rules, run, start
from bench.lake import Lake
from bench.machine import facts
from bench.promise import QUICK, Result

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_each_chunk_is_claimed_once_and_listing_is_one_indexed_query(tmp_path: Path) -> None:
    """Starting takes some time, which is a ratio and says nothing here."""
    results = [*start.measure(QUICK), *ledger.measure(tmp_path, QUICK)]
    exact = _exact(results, ratios=1)
    assert [(result.on, result.target) for result in exact] == [
        ("SQLite", "each once"),
        ("PostgreSQL", "each once"),
        ("SQLite", "one indexed query"),
    ]
    assert all(result.held for result in exact), exact


@pytest.mark.parametrize("table_format", TableFormat)
def test_publish_and_undo_write_no_data_file(
    tmp_path: Path, spark: SparkSession, lake_root: Path, table_format: TableFormat
) -> None:
    """And each run writes the same rows as the job by hand, which `run.measure` asserts itself."""
    lake = Lake(tmp_path, spark, lake_root)
    results = [*run.measure(lake, table_format, QUICK), *chunks.measure(lake, table_format, QUICK)]
    results += rules.measure(lake, table_format, QUICK)
    published = [
        result
        for measure in (publish.measure_others, publish.measure_rows, publish.measure_files)
        for result in measure(lake, table_format, QUICK)
    ]
    exact = _exact([*results, *published], ratios=6 + 2 * len(published) // 3)
    assert [(result.target, result.measured) for result in exact] == [("0", "0")] * (len(published) // 3)


def test_a_diff_finds_every_row_that_changed(tmp_path: Path, spark: SparkSession, lake_root: Path) -> None:
    """Which `diff.measure` asserts itself."""
    results = diff.measure(Lake(tmp_path, spark, lake_root), TableFormat.ICEBERG, QUICK)
    assert [result.target for result in results] == ["<= 1.5x", "<= 2.5x", "shown"]


def test_a_replay_writes_the_same_rows_as_a_batch_by_hand_and_as_a_stream(
    tmp_path: Path, spark: SparkSession, lake_root: Path
) -> None:
    """Which `kafka.measure` asserts itself."""
    results = kafka.measure(Lake(tmp_path, spark, lake_root), QUICK)
    assert [result.target for result in results] == ["<= 1.1x", "<= 0.77x", "shown", "a tenth"]
    assert results[-1].numbers["files"]["ours"] == QUICK.days


def _exact(results: list[Result], ratios: int) -> list[Result]:
    """What is no ratio. All of it fits into the file of numbers."""
    found = [result for result in results if not result.target.startswith(("<=", "shown"))]
    assert len(results) - len(found) == ratios
    assert all(result.numbers["samples"] for result in results if result not in found)
    assert json.loads(json.dumps({"machine": facts(), "results": [result.document() for result in results]}))
    return found
