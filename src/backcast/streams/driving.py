"""A query of a replay on its way: batch by batch into a folder of rows, at a pace, until it has read enough."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backcast.errors import BackcastError, ChunkFailed
from backcast.model.throttle import Work
from backcast.streams.counted import write_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from backcast.ports.pace import Pace

_ENOUGH = "backcast: the replay has read what it was to read"


class EnoughError(Exception):
    """Ends the query at a committed batch: what is raised before a batch wrote anything leaves it planned only."""


def drive(rows: DataFrame, checkpoint: Path, spool: Path, enough: Callable[[int], bool], pace: Pace | None) -> None:
    """Until the query has read all that there is, or enough. Each batch's rows are written anew when it is repeated.

    Raises ChunkFailed for a query that failed, and what the pace raises.
    """
    from pyspark.errors import StreamingQueryException

    batches = None if pace is None else _Paced(pace, spool)
    stopped: list[BackcastError] = []

    def write(frame: DataFrame, batch: int) -> None:
        if enough(batch):
            raise EnoughError(_ENOUGH)
        try:
            if batches is not None:
                batches.before(batch)
        except BackcastError as error:
            # Of what is raised here Spark passes on the text only.
            stopped.append(error)
            raise
        write_batch(frame, spool, batch)

    writer = rows.writeStream.foreachBatch(write).outputMode("append")
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    if batches is not None:
        batches.query = query
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        if stopped:
            raise stopped[0] from error
        if _ENOUGH not in str(error):
            raise _failed(error) from error
    if batches is not None:
        batches.done()


@dataclass(slots=True)
class _Paced:
    """Tells a pace what each batch has read, by Spark's own numbers, and lets it hold back the next one."""

    pace: Pace
    spool: Path
    query: StreamingQuery | None = None
    _batch: int = -1
    _begun: float = 0.0

    def before(self, batch: int) -> None:
        self.done()
        self.pace.before_a_job()
        self._batch, self._begun = batch, time.monotonic()

    def done(self) -> None:
        """The batch that was begun is over. One that read nothing asks for no rest."""
        if self.query is None or self._batch < 0:
            return
        told = next((each for each in reversed(self._told()) if each["batchId"] == self._batch), None)
        if told is not None and told["numInputRows"]:
            seconds, wrote = time.monotonic() - self._begun, size_of(self.spool / str(self._batch))
            self.pace.after_a_job(Work(int(told["numInputRows"]), seconds, busiest(told), wrote))
        self._batch = -1

    def _told(self) -> list[dict[str, Any]]:
        return [] if self.query is None else [json.loads(each.json) for each in self.query.recentProgress]


def size_of(folder: Path) -> int:
    """Of the files with rows that Spark wrote there."""
    return sum(each.stat().st_size for each in folder.glob("*.parquet"))


def busiest(told: dict[str, Any]) -> int:
    """Offsets that a batch read of the partition of which it read most; 0 for one that read no topic.

    The first batch of a query does not say where it began: then all that it read may have been of one.
    """
    read = [0]
    for source in told["sources"]:
        starts, ends = source.get("startOffset"), source.get("endOffset")
        for topic, partitions in (ends if isinstance(ends, dict) else {}).items():
            if not isinstance(partitions, dict):
                continue
            before = starts.get(topic) if isinstance(starts, dict) else None
            most = max((int(end) - int((before or {}).get(each, 0)) for each, end in partitions.items()), default=0)
            read.append(most if before is not None else min(most, int(source["numInputRows"])))
    return max(read)


def _failed(error: Exception) -> ChunkFailed:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return ChunkFailed(
        f"the replay's query failed: {lines[0] if lines else type(error).__name__}",
        hint="state of another shape than the transform's, or a failing transform; the log of Spark says more",
    )
