"""What a table will do with the batches that come: apply them, skip them without a word, or take rows twice.

Iceberg's sink goes by the newest snapshot among the ancestors of the current one that names the query, Delta's by the
transaction that the query id names; both skip every batch up to that number. A stream that Backcast runs looks itself,
and does not start at a batch that its table has: what it would find is asked of its own code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from backcast.errors import Refused
from backcast.model.checkpoint import SinkOutcome, SinkPrediction
from backcast.model.pipeline import TableFormat
from backcast.ports.streams import LiveCommit
from backcast.spark.delta.handle import DeltaHandle
from backcast.spark.gateway import jvm_errors
from backcast.spark.iceberg.handle import TableHandle, parent_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_KEYS = (("spark.sql.streaming.queryId", "spark.sql.streaming.epochId"), ("backcast.query", "backcast.batch"))
"""Which property of a snapshot names the query, and which the batch: Spark's sink, and ours."""


@dataclass(frozen=True, slots=True)
class SinkMemory:
    """What a table remembers of a query."""

    table: str
    format: TableFormat
    empty: bool
    last: int | None
    """The newest batch of it that landed."""
    version: str | None = None
    """The version of the table right after the batch that the stream is to go on from, where it is known."""
    stream: str | None = None
    """The stream that Backcast runs and that goes by this memory."""


def remembered(
    spark: SparkSession, table: str, table_format: TableFormat, query_id: str, streams: Sequence[str], after: int
) -> SinkMemory:
    """What the table knows about the query, and its version after that batch. `streams`: those that may have run it."""
    with jvm_errors(f"reading the history of {table}", table=table):
        if table_format is TableFormat.DELTA:
            return _delta(spark, table, query_id, streams)
        return _iceberg(spark, table, query_id, after)


def as_its_stream_sees_it(memory: SinkMemory, stream: str, newest: LiveCommit | None) -> SinkMemory:
    """Of a stream that Backcast runs: its tag, or its id, outlives the history that was read."""
    if newest is None:
        return replace(memory, stream=stream)
    last = newest.batch if memory.last is None else max(memory.last, newest.batch)
    return replace(memory, last=last, stream=stream, empty=False)


def predict(memory: SinkMemory, next_batch: int, again: int, *, new_id: bool, skipped: str = "") -> SinkPrediction:
    """`again`: how many batches that were committed before run once more. `memory` is about the query that wrote them.
    `skipped`: offsets between the two queries that neither reads.

    Pure.
    """

    def told(outcome: SinkOutcome, reason: str, remedy: str = "") -> SinkPrediction:
        return SinkPrediction(
            table=memory.table,
            outcome=outcome,
            reason=reason,
            remedy=remedy,
            next_batch=next_batch,
            last_epoch=memory.last,
        )

    last = memory.last
    if memory.empty:
        return told(SinkOutcome.APPLY, "the table is empty and takes what comes: what was read before is not in it")
    if skipped:
        reason = f"offsets {skipped} would be read by neither query: the other one stands in front of them"
        remedy = "begin where it stands: backcast checkpoint inspect; or leave them out with --unchecked-sink"
        return told(SinkOutcome.SKIP, reason, remedy)
    if new_id:
        if not again:
            return told(SinkOutcome.APPLY, "nothing runs a second time")
        if memory.format is TableFormat.ICEBERG and last is not None and last < next_batch:
            return told(SinkOutcome.APPLY, f"the table was rolled back: the newest batch in it is {last}")
        what = f"{again} batches that were committed run once more, under an id that the table does not know"
        remedy = "let it write to another table, or take their rows out of this one first"
        return told(SinkOutcome.DUPLICATE, what, remedy)
    if last is not None and last >= next_batch and memory.stream is not None:
        only = f" unless with the offsets that {last} has there" if last == next_batch else ""
        reason = f"it has batch {last} of stream {memory.stream}, which does not start at batch {next_batch}{only}"
        return told(SinkOutcome.REFUSE, reason, _instead_of(memory, memory.stream, next_batch))
    if last is not None and last >= next_batch:
        one = last == next_batch
        here = f"batch {last} is" if one else f"batches {next_batch} to {last} are"
        they, them = ("it is", "it") if one else ("they are", "them")
        lost = f"run again, {they} skipped, and rows that come to stand in {them} are lost"
        reason = f"{here} in the table under this id: {lost}"
        return told(SinkOutcome.SKIP, reason, _instead(memory, next_batch))
    if last is not None:
        missing = f"; rows of batches {last + 1} to {next_batch - 1} are not in it" if last < next_batch - 1 else ""
        return told(SinkOutcome.APPLY, f"the newest batch of this id in the table is {last}{missing}")
    if again and memory.stream is not None:
        reason = f"the table does not know stream {memory.stream} any more: it was rolled back, or its tag removed"
        remedy = "see which rows the table has; those that it still has are taken twice"
        return told(SinkOutcome.DUPLICATE, f"{reason}; {again} batches run once more", remedy)
    if again:
        reason = "the table's history does not name this query: expired after a compaction, or written by foreachBatch"
        remedy = "see how the stream writes; a plain append takes these rows twice"
        return told(SinkOutcome.DUPLICATE, f"{reason}; {again} batches run once more", remedy)
    return told(SinkOutcome.APPLY, "nothing runs a second time, though the table's history does not name this query")


def refuse_skip(prediction: SinkPrediction) -> SinkPrediction:
    """Raises Refused for what nobody would notice, and for a checkpoint with which its stream does not start."""
    if prediction.outcome in (SinkOutcome.SKIP, SinkOutcome.REFUSE):
        raise Refused(f"{prediction.table}: {prediction.reason}", hint=prediction.remedy)
    return prediction


def _instead_of(memory: SinkMemory, stream: str, next_batch: int) -> str:
    """What to do about a stream that Backcast runs."""
    known = f"backcast stream recover {stream} makes a checkpoint that goes on where the table stands"
    return f"{known}; {_instead(memory, next_batch)}"


def _instead(memory: SinkMemory, next_batch: int) -> str:
    correct = "to correct rows, restate them: backcast backfill PIPELINE --from DAY --to DAY"
    if memory.format is TableFormat.DELTA:
        return (
            f"{correct}; to run the batches again, RESTORE the table and fork the checkpoint: a restored Delta table "
            "still skips the old id"
        )
    back = "roll the table back" if memory.version is None else f"roll the table back to snapshot {memory.version}"
    return f"{correct}; to run the batches again, {back}, which takes out all that came since, then type this again"


def _iceberg(spark: SparkSession, table: str, query_id: str, after: int) -> SinkMemory:
    """Along the ancestors of the current snapshot, as far as they are kept."""
    loaded = TableHandle(spark, table).load()
    snapshot = loaded.currentSnapshot()
    empty, last, version = snapshot is None, None, None
    while snapshot is not None and (last is None or version is None):
        batch = _batch(snapshot, query_id)
        if batch is not None:
            last = batch if last is None else last
            version = str(snapshot.snapshotId()) if batch == after else version
        parent = parent_of(snapshot)
        snapshot = None if parent is None else loaded.snapshot(int(parent))
    return SinkMemory(table, TableFormat.ICEBERG, empty, last, version)


def _batch(snapshot: Any, query_id: str) -> int | None:
    summary = snapshot.summary()
    for query, batch in _KEYS:
        if summary.get(query) == query_id and summary.get(batch) is not None:
            return int(summary.get(batch))
    return None


def _delta(spark: SparkSession, table: str, query_id: str, streams: Sequence[str]) -> SinkMemory:
    snapshot = DeltaHandle(spark, table).at().snapshot
    ids = (query_id, *(f"backcast:stream:{each}:{query_id}" for each in streams))
    known = [snapshot.transactions().get(each) for each in ids]
    batches = [int(each.get()) for each in known if each.isDefined()]
    return SinkMemory(
        table, TableFormat.DELTA, int(snapshot.numOfFiles()) == 0 and not batches, max(batches, default=None)
    )
