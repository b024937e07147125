"""A sweep takes what forgotten stages left, and nothing of a stage that is being opened at that moment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.targets.delta.target import DeltaTarget

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_folder_of_a_stage_without_its_first_commit_and_young_files_stay(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "table"
    spark.range(1).write.format("delta").save(str(table))
    opening = table / "_backcast" / "backcast_stage_new" / "_delta_log"
    opening.mkdir(parents=True)
    left = table / "_backcast" / "backcast_stage_old" / "part-0.parquet"
    left.parent.mkdir()
    left.write_bytes(b"rows of long ago")
    os.utime(left, (0, 0))
    young = table / "_backcast" / "backcast_stage_late" / "part-0.parquet"
    young.parent.mkdir()
    young.write_bytes(b"rows of a process that may still live")
    assert DeltaTarget(spark, f"delta.`{table}`").sweep() == 1
    assert opening.is_dir()
    assert young.exists()
    assert not left.parent.exists()
