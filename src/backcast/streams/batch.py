"""One batch of a live query: allowed, written down, computed, landed once, recorded.

The order is what makes it exact. A batch that died anywhere is repeated by Spark with the same offsets, and what the
table says about its newest batch decides whether it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backcast.errors import ChunkFailed, Refused
from backcast.faults import point
from backcast.model.lineage import live_values
from backcast.model.live import KEPT_BATCHES, LiveBatch
from backcast.model.log import Ranges
from backcast.model.quarantine import POSITION, REJECTED, rejects
from backcast.model.recovery import last_with_rows
from backcast.model.report import Progress
from backcast.model.stream import StreamSpec, StreamWrite
from backcast.model.table import Merging, TableIdentity
from backcast.ports import Engine, Sifted
from backcast.ports.streams import LiveCommit, LiveHost, LiveSource, LiveTarget, LiveWrite

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FREEZE_POLL = 0.5


class StopAtBoundary(Exception):
    """Raised before a batch has done anything: the query ends behind the batch that is committed."""


@dataclass(frozen=True, slots=True)
class Sink:
    """Where a stream's rows go, and what is said about them."""

    spec: StreamSpec
    source: LiveSource
    engine: Engine
    target: Callable[[SparkSession], LiveTarget]
    """The table, for a batch's own session."""
    identity: TableIdentity
    transform: str
    version: str
    tables: str | None
    """Versions of the tables that are read beside the topic."""

    @property
    def merging(self) -> Merging | None:
        if self.spec.write is not StreamWrite.MERGE:
            return None
        dataset, settings = self.spec.dataset, self.spec.pipeline.settings
        return Merging(dataset.key, dataset.version or "", settings.deletes, settings.masked)

    def fitted(self, rows: DataFrame, offsets: str) -> DataFrame:
        """In the table's columns and types. Raises Refused when they are not the table's."""
        columns, settings = self.identity.columns, self.spec.pipeline.settings
        if settings.lineage_columns:
            read = f"kafka:{self.spec.source.topic}@{offsets}"
            values = live_values(f"stream:{self.spec.name}", self.transform, self.version, read, self.tables, columns)
            rows = self.engine.stamp(rows, values)
        wanted = settings.result_columns(columns) if self.merging is not None else columns
        return self.engine.conform(rows, wanted, self.identity.without_empty_texts)


class Batches:
    """What the query calls for every batch, in its own thread."""

    def __init__(self, sink: Sink, host: LiveHost) -> None:
        self._sink, self._host = sink, host
        self._spec = sink.spec
        self._first = True
        self._last_with_rows: int | None = None
        self.stopped = False
        self.error: Exception | None = None
        """What ended the query, as it was raised: Spark passes on its text alone."""
        self.query_id: Callable[[], str] = lambda: ""
        self.ranges: Callable[[int], Ranges] = lambda _: ()
        self.undecoded: Callable[[], int | None] = lambda: None
        """How many records of the batch under way could not be decoded; None when that was lost."""

    def __call__(self, rows: DataFrame, batch: int) -> None:
        try:
            self._gate()
            self._take(rows, batch)
        except StopAtBoundary:
            self.stopped = True
            raise
        except Exception as error:
            self.error = error
            raise

    def _gate(self) -> None:
        """Before anything is done: the only place at which a stop leaves nothing behind."""
        if self._host.asked() is not None:
            raise StopAtBoundary("backcast: asked to stop")
        self._host.lease()

    def _wait_while_frozen(self, batch: LiveBatch) -> None:
        """Behind the intent: who freezes the table sees either that it is meant, or that it waits."""
        store, host = self._host.store, self._host
        who = host.frozen()
        if who is None:
            return
        store.record(batch.model_copy(update={"waits": True}), host.lease())
        host.on_progress(Progress(step="stream", message=f"waits: {who}"))
        while host.frozen() is not None:
            self._gate()
            host.clock.sleep(_FREEZE_POLL)
        store.record(batch, host.lease())
        self._wait_while_frozen(batch)

    def _take(self, rows: DataFrame, number: int) -> None:
        ranges, target = self.ranges(number), self._sink.target(rows.sparkSession)
        offsets = ",".join(f"{each.partition}={each.start}..{each.end}" for each in ranges)
        batch = LiveBatch(
            stream=self._spec.name,
            query_id=self.query_id(),
            batch=number,
            offsets=ranges,
            base=None,
            at=self._host.clock.now(),
        )
        if self._first:
            found = self._landed_before(target, batch, offsets)
            if found is not None:
                # Computed all the same: a stateful query keeps its state, and moves its watermark, while its rows are.
                rows.write.format("noop").mode("overwrite").save()
                self._landed(batch, found, 0)
                self._last_with_rows = number
                return
            self._first = False
        batch = batch.model_copy(update={"last_with_rows": self._last_with_rows})
        point("stream.before-intent")
        batch = batch.model_copy(update={"base": target.head()})
        self._host.store.record(batch, self._host.lease())
        self._wait_while_frozen(batch)
        point("stream.after-intent")
        self._write(target, batch, offsets, rows)

    def _landed_before(self, target: LiveTarget, batch: LiveBatch, offsets: str) -> LiveCommit | None:
        """What an earlier process left of this batch. Only the first batch of a process can be such a one."""
        kept = self._host.store.batches(batch.stream, KEPT_BATCHES)
        known = [each for each in kept if each.query_id == batch.query_id]
        intent = next((each for each in known if each.batch == batch.batch), None)
        found = target.newest(batch.stream, batch.query_id, None if intent is None else intent.base)
        if found is None or found.batch < batch.batch:
            self._last_with_rows = last_with_rows(batch.batch, known, None if found is None else found.batch)
            return None
        same = found.offsets in (None, offsets) and (intent is None or intent.offsets == batch.offsets)
        if found.batch == batch.batch and same:
            return found
        raise Refused(
            f"the checkpoint of stream {batch.stream} is at batch {batch.batch} ({offsets}), and the table has batch"
            f" {found.batch} of the same query ({found.offsets or 'offsets unknown'}): written again, rows would be"
            " doubled or skipped",
            hint=f"restore the checkpoint, or begin a new one: backcast checkpoint inspect {batch.stream}",
        )

    def _write(self, target: LiveTarget, batch: LiveBatch, offsets: str, rows: DataFrame) -> None:
        sink, aside = self._sink, 0
        names = frozenset(each.name for each in sink.identity.columns)
        sifted: Sifted | None = None
        if rejects(rows.columns, names):
            # Computed once: what is rejected is looked up in the same rows.
            rows = rows.persist()
            sifted = sink.engine.sifted(rows, names, frozenset({self._spec.source.topic}))
        fitted = sink.fitted(rows if sifted is None else sifted.kept, offsets)
        if sink.merging is not None:
            fitted = sink.engine.newest(fitted, sink.merging.key, sink.merging.version)

        def ready() -> None:
            nonlocal aside
            aside = self._set_aside(batch, sifted)
            self._host.lease()

        write = LiveWrite(
            stream=batch.stream,
            query_id=batch.query_id,
            batch=batch.batch,
            offsets=offsets,
            properties=self._properties(),
            merging=sink.merging,
        )
        try:
            commit = target.write(write, fitted, ready)
        finally:
            if sifted is not None:
                rows.unpersist()
        self._landed(batch, commit, aside)

    def _set_aside(self, batch: LiveBatch, sifted: Sifted | None) -> int:
        rejected = None
        if sifted is not None and sifted.count() != 0:
            rejected = sifted.rejected
            self._sink.engine.refuse_strangers(rejected, frozenset({self._spec.source.topic}))
        if rejected is None and self.undecoded() == 0:
            return 0
        at = self._host.clock.now()
        return self._sink.source.set_aside(batch.stream, batch.batch, batch.offsets, rejected, at)

    def _landed(self, batch: LiveBatch, commit: LiveCommit, aside: int) -> None:
        told = {"version": commit.version, "landed": True, "rows_out": commit.rows, "set_aside": aside}
        self._first = False
        self._last_with_rows = self._last_with_rows if commit.version is None else batch.batch
        self._host.store.record(batch.model_copy(update=told), self._host.lease())
        point("stream.after-record")

    def _properties(self) -> dict[str, str]:
        sink = self._sink
        return {
            "backcast.pipeline": self._spec.pipeline.name,
            "backcast.transform": sink.transform,
            "backcast.version": sink.version,
            "backcast.topic": self._spec.source.topic,
            **({} if sink.tables is None else {"backcast.tables": sink.tables}),
        }


def refuse_unfit(sink: Sink, rows: DataFrame) -> None:
    """Before the query starts: what it returns is not what the table takes."""
    names = frozenset(each.name for each in sink.identity.columns)
    if not rows.isStreaming:
        raise ChunkFailed(
            f"{sink.transform} returns no stream: it does not use its input {sink.spec.input!r}",
            hint=f"return rows of inputs[{sink.spec.input!r}]",
        )
    if rejects(rows.columns, names):
        rows = rows.drop(*(name for name in (REJECTED, POSITION) if name not in names))
    sink.fitted(rows, "")
