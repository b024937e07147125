"""A declared stream as a query of Spark's: started, watched, stopped behind a committed batch."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backcast.errors import BackcastError, ChunkFailed, Refused, SparkFailed
from backcast.model.analysis import Combines
from backcast.model.live import LiveBatch, Stop
from backcast.model.log import Ranges, TopicFacts
from backcast.model.report import Progress
from backcast.model.words import many
from backcast.ports.streams import LiveCommit, LiveHost, Position
from backcast.spark.combining import remembered
from backcast.spark.gateway import answered, causes, is_jvm_error, translate
from backcast.spark.streaming_plan import is_stateful
from backcast.streams.batch import Batches, Sink, StopAtBoundary, refuse_unfit
from backcast.streams.position import CheckpointFiles, batch_ranges, position
from backcast.streams.progress import completed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_SECONDS = 0.3
_PATIENCE = 10.0
"""A first batch that is under way for so long counts as one of a query that works."""
_WAITS = ("Waiting for data to arrive", "Waiting for next trigger")
"""What Spark says of a query that has looked for records, and was not kept from it."""
_LOG_WORDS = (
    "Unexpected end-of-input",
    "Unrecognized token",
    "Incomplete log file",
    "_LOG_FILE",
    "_LOG_VERSION",
    "_LOG_UPDATE",
)
"""What Spark says about files of a checkpoint that it cannot read."""
_STATE_WORDS = ("STATE_STORE", "StateSchema", "state store", "State store", "stateful operator", "STDS_")


@dataclass(frozen=True)
class SparkQuery:
    """The port LiveQuery."""

    spark: SparkSession
    sink: Sink
    rows: Callable[[], DataFrame]
    """The transform, applied to the topic without end."""
    observed: tuple[str, str]
    """Under which names the query counts what could not be decoded."""
    digest: Callable[[], str]

    def position(self) -> Position:
        return position(self._files, self.sink.spec.source.topic)

    def topic(self) -> TopicFacts:
        return self.sink.source.facts()

    def newest(self, query_id: str) -> LiveCommit | None:
        return self.sink.target(self.spark).newest(self.sink.spec.name, query_id, None)

    def stateful(self) -> bool:
        return is_stateful(self._transformed())

    def remembers(self) -> tuple[Combines, ...]:
        return remembered(self._transformed())

    def code(self) -> str:
        return self.digest()

    def run(self, host: LiveHost, *, once: bool) -> None:
        rows = self._transformed()
        refuse_unfit(self.sink, rows)
        batches = Batches(self.sink, host)
        _Running(self, batches, host).until_it_ends(self._start(rows, batches, host, once=once))

    def _transformed(self) -> DataFrame:
        try:
            return self.rows()
        except ChunkFailed as error:
            error.hint = f"correct the transform, then backcast stream start {self.sink.spec.name}"
            raise

    def _start(self, rows: DataFrame, batches: Batches, host: LiveHost, *, once: bool) -> StreamingQuery:
        spec, begun = self.sink.spec, threading.Event()
        found: list[StreamingQuery] = []

        def started() -> StreamingQuery:
            # The first batch may be called before the call that starts the query is back.
            begun.wait()
            if not found:
                raise StopAtBoundary("backcast: the start is not on record")
            return found[0]

        batches.query_id = lambda: str(started().id)
        batches.ranges = self._ranges
        batches.undecoded = lambda: _observed(started(), *self.observed)
        trigger: dict[str, Any] = (
            {"availableNow": True}
            if once
            else {"processingTime": f"{int(spec.trigger.total_seconds() * 1000)} milliseconds"}
        )
        writer = rows.writeStream.queryName(f"backcast stream {spec.name}").outputMode("append")
        writer = writer.option("checkpointLocation", spec.checkpoint).trigger(**trigger).foreachBatch(batches)
        try:
            query = writer.start()
        except Exception as error:
            if not (is_jvm_error(error) and answered(error)):
                # A JVM that went away has said nothing about the transform.
                raise
            raise _not_streamable(self.sink, error) from error
        try:
            # On record before any batch passes: what the checkpoint holds of a query that died is known to be ours.
            host.started(str(query.id))
            found.append(query)
        finally:
            begun.set()
        return query

    def _ranges(self, batch: int) -> Ranges:
        return batch_ranges(self._files, batch, self.sink.spec.source.topic)

    @property
    def _files(self) -> CheckpointFiles:
        return CheckpointFiles(self.spark, self.sink.spec.checkpoint)


class _Running:
    """The query from outside: its progress goes to the store, requests to stop go to it."""

    def __init__(self, query: SparkQuery, batches: Batches, host: LiveHost) -> None:
        self._query, self._batches, self._host = query, batches, host
        self._told, self._works = -1, False
        self._patient_until = host.clock.monotonic() + _PATIENCE

    def until_it_ends(self, query: StreamingQuery) -> None:
        interrupted = False
        try:
            while query.isActive:
                # Raises what ended it; and never waits long, because signals are heard in between only.
                self._wait(query)
                self._tell(query)
                self._tell_once_it_works(query)
                how = self._host.asked()
                if how is Stop.NOW or (how is Stop.BOUNDARY and not query.status["isTriggerActive"]):
                    # Behind a batch, whose successor would meet the gate before it does anything.
                    interrupted = True
                    query.stop()
                self._host.lease()
            self._wait(query)
        except Exception as error:
            if self._batches.stopped or (interrupted and is_jvm_error(error)):
                return
            raise self._failure(error) from error
        finally:
            with suppress(Exception):
                query.stop()
            with suppress(BackcastError):
                self._tell(query)

    def _tell_once_it_works(self, query: StreamingQuery) -> None:
        """A query that Spark has started may still fail at its checkpoint, its state or its first batch."""
        if self._works or not query.isActive:
            return
        waited = self._host.clock.monotonic() >= self._patient_until
        if waited or query.lastProgress is not None or query.status["message"] in _WAITS:
            self._works = True
            self._host.running()

    def _wait(self, query: StreamingQuery) -> None:
        query.awaitTermination(_POLL_SECONDS)  # type: ignore[arg-type]  # parts of a second are fine

    def _failure(self, error: Exception) -> Exception:
        own = self._batches.error
        if own is not None and (isinstance(own, BackcastError) or not is_jvm_error(own)):
            return own
        if not is_jvm_error(error):
            return error
        name = self._query.sink.spec.name
        words = [each.message for each in causes(own if own is not None and is_jvm_error(own) else error)]
        about_state = next((each for each in words if any(word in each for word in _STATE_WORDS)), None)
        if about_state is not None:
            return Refused(
                f"the state of stream {name} does not fit its query any more: {about_state}",
                hint="a stateful stream goes on only with the logic that it began with; with another it needs a new"
                f" checkpoint: backcast checkpoint inspect {name}",
            )
        about_logs = next((each for each in words if any(word in each for word in _LOG_WORDS)), None)
        if about_logs is not None and self._told < 0:
            return Refused(
                f"the checkpoint of stream {name} cannot be read: {about_logs.partition('[Source')[0].strip(' (')}",
                hint=f"backcast checkpoint verify {name}, then backcast stream recover {name}",
            )
        found = translate(own if own is not None else error, f"running stream {name}")
        if isinstance(found, SparkFailed):
            found.hint = f"backcast stream start {name} goes on behind the last committed batch"
        return found or error

    def _tell(self, query: StreamingQuery) -> None:
        """Numbers of the batches that are over since it was asked last."""
        try:
            news = [json.loads(each.json) for each in query.recentProgress]
        except Exception as error:
            if not is_jvm_error(error):
                raise
            return
        known = {each.batch: each for each in self._known(query)} if any(self._is_news(each) for each in news) else {}
        for told in news:
            batch = known.get(int(told["batchId"]))
            if batch is None or not batch.landed or not self._is_news(told):
                continue
            self._told = batch.batch
            whole = completed(batch, told, self._query.sink.spec.source.topic)
            self._host.store.record(whole, self._host.lease())
            self._host.on_progress(_progress(whole))

    def _is_news(self, told: dict[str, Any]) -> bool:
        return int(told["batchId"]) > self._told and "addBatch" in (told.get("durationMs") or {})

    def _known(self, query: StreamingQuery) -> list[LiveBatch]:
        found = self._host.store.batches(self._query.sink.spec.name, 100)
        return [each for each in found if each.query_id == str(query.id)]


def _progress(batch: LiveBatch) -> Progress:
    words = f"{many(batch.rows_in or 0, 'record')} in, {many(batch.rows_out, 'row')} out, lag {batch.lag:,}"
    return Progress(
        step="stream", message=f"batch {batch.batch}: {words}", rows=batch.rows_out, seconds=batch.seconds or 0.0
    )


def _observed(query: StreamingQuery, name: str, column: str) -> int | None:
    """What was counted by the job that has just run; None when Spark does not tell."""
    try:
        found = query._jsq.streamingQuery().lastExecution().observedMetrics().get(name)
        return int(found.get().getAs(column)) if found.isDefined() else None
    except Exception as error:
        if not is_jvm_error(error) and type(error).__name__ != "Py4JError":
            raise
        return None


def _not_streamable(sink: Sink, error: Exception) -> BackcastError:
    chain = causes(error)
    words = chain[-1].message if chain else str(error).splitlines()[0]
    return Refused(
        f"Spark does not run {sink.transform} as a stream: {words}",
        hint=f"what needs all rows at once runs in batch only: backcast backfill {sink.spec.pipeline.name} --from DAY"
        " --to DAY",
    )
