"""Records as files in the order of event time, one file for each batch of the query that reads them.

Spark's file source takes the oldest file first, so the files get times of change that tell their order.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backcast.spark.predicates import quote
from backcast.streams.counted import refuse_other_count, write_counted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_MOST_FILES = 5_000
_LONG_AGO = 1_500_000_000
_PIECE = "_backcast_piece"


def sort_records(rows: DataFrame, column: str, records: int, most: int, folder: Path) -> None:
    """Sorted by event time, in files of about so many records. Records of one moment are never parted: behind a file
    whose newest record is of that moment, others of it could be late.
    """
    files = max(1, min(_MOST_FILES, -(-records // most)))
    time = F.col(quote(column))
    written = _scratch(folder)
    count = write_counted(rows.repartitionByRange(files, time).sortWithinPartitions(time), written)
    _settle(sorted(written.glob("part-*.parquet")), folder)
    _prove(rows, folder, count)


def part_records(rows: DataFrame, column: str, starts: Sequence[datetime], folder: Path) -> None:
    """One file for what lies between two of these moments, whatever its order; others before and behind them."""
    moments = F.array(*(F.lit(each).cast("timestamp") for each in sorted(starts)))
    event = F.col(quote(column)).cast("timestamp")
    piece = F.size(F.filter(moments, lambda start: start <= event))
    written = _scratch(folder)
    # All records of a piece are written by one task, and so into one file.
    count = write_counted(rows.withColumn(_PIECE, piece).repartition(_PIECE), written, _PIECE)
    found = {int(each.parent.name.partition("=")[2]): each for each in written.glob(f"{_PIECE}=*/part-*.parquet")}
    _settle([found[number] for number in sorted(found)], folder)
    _prove(rows, folder, count)


def ordered_records(spark: SparkSession, schema: StructType, folder: Path) -> DataFrame:
    """The files as a stream that takes one after the other."""
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", "1").parquet(str(folder))


def _prove(rows: DataFrame, folder: Path, count: int | None) -> None:
    refuse_other_count(folder, count, rows.sparkSession.read.schema(rows.schema).parquet(str(folder)).count())


def _scratch(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder / "scratch"


def _settle(files: Sequence[Path], folder: Path) -> None:
    for number, file in enumerate(files):
        placed = folder / f"{number:06}.parquet"
        file.rename(placed)
        os.utime(placed, (_LONG_AGO + number, _LONG_AGO + number))
    shutil.rmtree(folder / "scratch")
