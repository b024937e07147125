"""Rows in files, and that as many are found there as were written: on a cluster they may lie on other machines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F

from backcast.errors import ChunkFailed
from backcast.model.words import many
from backcast.spark.observation import asked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS = "rows"


def write_counted(rows: DataFrame, folder: Path, partition: str | None = None) -> int | None:
    """Overwrites what is there. How many rows the tasks wrote, by their own count; None when that was lost."""
    observation = Observation()
    writer = rows.observe(observation, F.count(F.lit(1)).alias(_ROWS)).write.mode("overwrite")
    (writer if partition is None else writer.partitionBy(partition)).parquet(str(folder))
    told = asked(observation)
    return None if told is None else int(told[_ROWS])


def write_batch(rows: DataFrame, spool: Path, batch: int) -> None:
    """A batch of a query. What it wrote is on record until it is proven."""
    folder = unproven(spool)
    folder.mkdir(exist_ok=True)
    record = folder / str(batch)
    record.unlink(missing_ok=True)
    count = write_counted(rows, spool / str(batch))
    if count is not None:
        record.write_text(str(count))


def prove_batches(result: Callable[[], DataFrame], spool: Path) -> None:
    """Rows of the batches since this was asked last, with the columns of the query's result. Raises ChunkFailed."""
    records = sorted(unproven(spool).glob("*"), key=lambda each: int(each.name))
    if not records:
        return
    written = sum(int(each.read_text()) for each in records)
    frame, folders = result(), [str(spool / each.name) for each in records]
    refuse_other_count(spool, written, frame.sparkSession.read.schema(frame.schema).parquet(*folders).count())
    for each in records:
        each.unlink()


def unproven(spool: Path) -> Path:
    """Where a batch is on record until its rows have been found."""
    return spool.with_name(f"{spool.name}.unproven")


def refuse_other_count(folder: Path, written: int | None, found: int) -> None:
    """Raises ChunkFailed when rows are missing; nothing is known of rows whose count was lost."""
    if written is None or written == found:
        return
    raise ChunkFailed(
        f"Spark wrote {many(written, 'row')} into {folder}, and finds {found:,} there",
        hint="do executors run on machines that do not share this folder? Then take `shared` out of `spark`, compute on"
        " a local master, cancel the run (of a full replay: --give-up) and begin anew",
    )
