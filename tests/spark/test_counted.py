"""Rows of a replay that executors wrote and nobody finds are missed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.errors import ChunkFailed
from backcast.streams.counted import prove_batches, write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_rows_that_were_written_and_are_not_there_fail_a_replay(spark: SparkSession, tmp_path: Path) -> None:
    """A file that lies on another machine's disk is as good as gone. A batch is proven once; a repeated one again."""
    spool = tmp_path / "rows"
    rows = spark.range(0, 100, numPartitions=2)
    for batch in range(11):
        write_batch(rows.where("id < 0") if batch == 3 else rows, spool, batch)
    prove_batches(lambda: rows, spool)
    sorted((spool / "4").glob("*.parquet"))[1].unlink()
    prove_batches(lambda: rows, spool)
    write_batch(rows, spool, 10)
    sorted((spool / "10").glob("*.parquet"))[1].unlink()
    with pytest.raises(ChunkFailed, match=r"Spark wrote 100 rows into .*, and finds 50 there"):
        prove_batches(lambda: rows, spool)
