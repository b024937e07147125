"""The replay of a declared stream, wired: its topic, the pipeline's transform, and a query that comes to an end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.errors import ChunkFailed, Drifted, InvalidRequest
from backcast.model.late import Closing
from backcast.model.log import Ranges, read_by_partition, span
from backcast.model.pipeline import Job
from backcast.model.replay import Replayed, ReplayPin
from backcast.model.scope import EVERYTHING
from backcast.model.states import Execution
from backcast.model.stream import StreamSpec, Watermark
from backcast.model.throttle import Work
from backcast.model.time import Interval
from backcast.model.watermark import WatermarkStrategy
from backcast.project.full_replaying import StreamFullReplay
from backcast.project.sharing import refuse_unshared
from backcast.streams.ending import END_OF_TIME

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.late import LateFound, OpenWindows
    from backcast.model.manifest import InputPin, Manifest
    from backcast.model.pipeline import InputSpec
    from backcast.model.replay import Difference
    from backcast.ports.pace import Pace
    from backcast.project.config import Project
    from backcast.project.loading import LoadedTransform
    from backcast.project.wiring import Wiring
    from backcast.sources.kafka.replayed import ReplayedInput
    from backcast.sources.tables import TableInput
    from backcast.streams.catch_up import CatchUp
    from backcast.streams.replay import Replay

_END_OF_TIME = f"{END_OF_TIME:%Y-%m-%d %H:%M:%S}"


@dataclass(frozen=True)
class StreamReplay:
    """The port `Replaying` over one stream of a project."""

    wiring: Wiring
    stream: StreamSpec

    def pin(self, before: datetime) -> ReplayPin:
        from backcast.streams.replay_start import start_before

        self.refuse_unshared(replay_folder(self.wiring.project, "RUN").parent)
        watermark = self._watermark
        found = start_before(self.stream.checkpoint, self.stream.source.topic, before, watermark.delay)
        return ReplayPin(
            stream=self.stream.name,
            strategy=WatermarkStrategy.BOUNDED,
            because="",
            checkpoint=self.stream.checkpoint,
            query_id="" if found is None else found.query_id,
            batch=None if found is None else found.batch,
            positions={} if found is None else found.positions,
            column=watermark.column,
            delay_seconds=int(watermark.delay.total_seconds()),
            most_per_trigger=self.full.batch_records,
        )

    def differences(self, job: Job) -> tuple[Difference, ...]:
        from backcast.spark.streaming_plan import differences

        return differences(self.planned(self._tables(), job))

    def in_order(self, job: Job) -> tuple[str, ...]:
        from backcast.spark.streaming_plan import in_order

        return in_order(self.planned(self._tables(), job))

    def partitions(self) -> int:
        return self.full.partitions()

    def closing(self, window: Interval, now: datetime) -> Closing | None:
        from backcast.spark.streaming_plan import closing

        try:
            found = closing(self.looked_at(window, now))
        except ChunkFailed:
            return Closing()
        # What somebody else runs may remember more than the transform says.
        return Closing() if found is None and self.stream.external else found

    def open_windows(self, now: datetime) -> OpenWindows | None:
        from backcast.project.open_windows import open_windows
        from backcast.project.streaming import ALWAYS
        from backcast.spark.streaming_plan import holding

        return open_windows(self.stream, self.wiring.stream_reader(), lambda: holding(self.looked_at(ALWAYS, now)))

    def late(self, windows: Sequence[Interval], now: datetime) -> LateFound:
        from backcast.project.late_windows import late_windows

        return late_windows(self, windows, now)

    def input(self, pin: ReplayPin) -> ReplayedInput:
        from backcast.sources.kafka.replayed import ReplayedInput

        return ReplayedInput(self.wiring.log_input(self.stream.input, self.stream.source), pin.positions, pin.ends)

    def table(self, pin: ReplayPin, spec: InputSpec) -> TableInput:
        from backcast.sources.tables import TableInput

        return TableInput(spec, self.wiring.source(spec.dataset.name), pin.tables)

    def records(self, replay: ReplayPin, pin: InputPin) -> DataFrame:
        return self.input(replay).records(pin)

    def own_checkpoint(self, run_id: str, replay: ReplayPin) -> Path:
        return Path(replay.checkpoint) if replay.takeover else replay_folder(self.wiring.project, run_id) / "checkpoint"

    def planning(self) -> PlannedReplay:
        return PlannedReplay(self)

    def transform(
        self, run_id: str, manifest: Manifest, inputs: tuple[InputPin, ...], pace: Pace | None = None
    ) -> ReplayedTransform:
        return ReplayedTransform(self, run_id, manifest, inputs, pace)

    def caught_up(self) -> ReplayPin:
        query, watermark = self.full.catch_up(), self.stream.watermark
        query.refuse_other_code()
        ends = query.ends()
        return ReplayPin(
            stream=self.stream.name,
            strategy=WatermarkStrategy.BOUNDED,
            because="it goes on as the stream",
            checkpoint=str(query.checkpoint),
            query_id=query.query_id() or "",
            batch=query.batch,
            # A partition that came later is read from its first offset.
            positions=dict.fromkeys(ends, 0) | query.starts(),
            ends=ends,
            takeover=True,
            tables=query.tables(),
            column="" if watermark is None else watermark.column,
            delay_seconds=0 if watermark is None else int(watermark.delay.total_seconds()),
            most_per_trigger=self.full.batch_records,
        )

    def refuse_unshared(self, folder: Path) -> None:
        """Raises Refused when what executors write there might not be found here."""
        refuse_unshared(self.wiring.project, str(self.wiring.spark().sparkContext.master), folder)

    @property
    def full(self) -> StreamFullReplay:
        return StreamFullReplay(self.wiring, self.stream)

    def planned(self, inputs: Mapping[str, DataFrame], job: Job) -> DataFrame:
        """The transform's result over the topic as a stream that is never started."""
        rows = self.topic("earliest")
        marked = rows if self.stream.watermark is None else _marked(rows, self.stream.watermark)
        return self.user_code.streamed({**inputs, self.stream.input: marked}, job)

    def looked_at(self, window: Interval, now: datetime) -> DataFrame:
        """That, to be read as a plan and for nothing else. Raises ChunkFailed when the transform does."""
        return self.planned(self._tables(), Job("look", Execution.DRY_RUN, window, now))

    def topic(self, starting: str, most: int | None = None) -> DataFrame:
        """Decoded as the live query decodes it, without an end."""
        from backcast.sources.kafka.streaming import KafkaStream

        access = self.wiring.project.kafka_access(self.stream.source.name)
        most = most or self.stream.most_per_trigger
        return KafkaStream(self.wiring.spark(), access, self.stream.source, starting, most).frame()

    def _tables(self) -> dict[str, DataFrame]:
        """The other inputs, as they are now."""
        others = [each for each in self.stream.pipeline.inputs if each.name != self.stream.input]
        opened = {each.name: self.wiring.source(each.dataset.name) for each in others}
        return {name: source.read(source.facts().version, EVERYTHING) for name, source in opened.items()}

    @cached_property
    def user_code(self) -> LoadedTransform:
        return self.wiring.transform(self.stream.pipeline.name)

    @property
    def _watermark(self) -> Watermark:
        if self.stream.watermark is None:
            raise InvalidRequest(
                f"stream {self.stream.name} declares no watermark: nobody can say when its windows are closed",
                hint=f"declare `watermark` under streams.{self.stream.name}",
            )
        return self.stream.watermark


@dataclass(frozen=True)
class PlannedReplay:
    """The transform over the stream, for a plan: it is looked at, never started."""

    of: StreamReplay

    @property
    def reference(self) -> str:
        return self.of.user_code.reference

    @property
    def version(self) -> str:
        return self.of.user_code.version

    def apply(self, inputs: Mapping[str, DataFrame], job: Job) -> DataFrame:
        return self.of.planned(inputs, job)


@dataclass(frozen=True)
class ReplayedTransform:
    """The transform, whose rows the replay has computed: a job picks its own out of them."""

    of: StreamReplay
    run_id: str
    manifest: Manifest
    inputs: tuple[InputPin, ...]
    pace: Pace | None = None
    """What holds back the query's batches."""

    @property
    def reference(self) -> str:
        return self.of.user_code.reference

    @property
    def version(self) -> str:
        return self.of.user_code.version

    def apply(self, inputs: Mapping[str, DataFrame], job: Job) -> DataFrame:
        """Runs the replay first, unless an earlier job has."""
        if self._pin.takeover and self._pin.batch is not None:
            return self._own_query().spooled(self._pin.batch)
        return self.replay(inputs, job).rows()

    def told(self) -> Replayed | None:
        """What the replay did; None while it has not."""
        if self._pin.takeover:
            return None
        done = replay_folder(self.of.wiring.project, self.run_id) / "done.json"
        return Replayed.model_validate_json(done.read_text()) if done.exists() else None

    def _own_query(self) -> CatchUp:
        """The query of the full replay that was planned. Raises Drifted when another has taken its place."""
        query = self.of.full.catch_up()
        if query.query_id() != self._pin.query_id:
            raise Drifted(
                f"the rows that a replay of stream {self.of.stream.name} had computed are gone",
                hint=f"backcast cancel {self.run_id}, then backcast stream replay {self.of.stream.name}",
            )
        return query

    def replay(self, inputs: Mapping[str, DataFrame], job: Job) -> Replay:
        from backcast.streams.replay import Replay

        folder = replay_folder(self.of.wiring.project, self.run_id)
        self.of.refuse_unshared(folder)
        windows = self.manifest.scope.windows
        whole = Interval(start=min(each.start for each in windows), end=max(each.end for each in windows))
        # The query serves all jobs: what it is told must not depend on which of them comes first.
        job = replace(job, window=whole)
        others = {name: frame for name, frame in inputs.items() if name != self.of.stream.input}
        return Replay(
            folder=folder,
            ends={each.partition: each.end for each in self._topic},
            topic=self.of.stream.source.topic,
            streamed=lambda sentinels: self._streamed(sentinels, others, job),
            sentinel=self._write_sentinel,
            begin=self._begin,
            event_seconds=(whole.end - whole.start).total_seconds(),
            order=self._order if self._pin.ordered else None,
            ordering=self._ordering,
            pace=self.pace,
        )

    def _streamed(self, sentinels: Path, others: Mapping[str, DataFrame], job: Job) -> DataFrame:
        from pyspark.sql import functions as F

        spark, watermark = self.of.wiring.spark(), self._watermark
        rows = self._rows()
        ends = spark.readStream.schema(rows.schema).parquet(str(sentinels))
        marked = _marked(rows.unionByName(ends), watermark)
        before_the_end = F.coalesce(F.col(watermark.column) < F.lit(_END_OF_TIME).cast("timestamp"), F.lit(True))
        return self.of.user_code.streamed({**others, self.of.stream.input: marked.where(before_the_end)}, job)

    def _order(self, folder: Path) -> None:
        """The records of the pinned offsets, as the strategy wants them."""
        from backcast.streams.ordering import part_records, sort_records

        rows, column = self.of.records(self._pin, self._input), self._pin.column
        if self._pin.order is WatermarkStrategy.PARTITIONS:
            windows = [each.window for each in self.manifest.chunks]
            part_records(rows, column, [edge for each in windows for edge in (each.start, each.end)], folder)
        else:
            sort_records(rows, column, span(self._topic), self._pin.batch_records, folder)

    @property
    def _ordering(self) -> Work:
        """To sort them, each is read twice: once to learn where the files are to be parted."""
        log = self._input.log
        read = 0 if log is None else max(read_by_partition([log.from_log]).values(), default=0)
        times = 2 if self._pin.order is not WatermarkStrategy.PARTITIONS else 1
        return Work(span(self._topic) * times, 0.0, read * times)

    def _rows(self) -> DataFrame:
        """Of the pinned offsets, however far the log goes by now."""
        from backcast.sources.kafka.job import among

        if self._pin.ordered:
            from backcast.streams.ordering import ordered_records

            records = replay_folder(self.of.wiring.project, self.run_id) / "records"
            return ordered_records(self.of.wiring.spark(), self.of.topic("earliest").schema, records)
        first = {str(each.partition): each.start for each in self._topic}
        wanted = tuple(each for each in self._topic if each.span)
        rows = self.of.topic(json.dumps({self.of.stream.source.topic: first}), self._pin.batch_records)
        return rows.where(among(wanted) if wanted else "false")

    def _write_sentinel(self, folder: Path) -> None:
        """One row without values, behind the end of every window."""
        from pyspark.sql import functions as F

        schema = self._rows().schema
        columns = [
            F.lit(_END_OF_TIME).cast("timestamp").cast(each.dataType).alias(each.name)
            if each.name == self._watermark.column
            else F.lit(None).cast(each.dataType).alias(each.name)
            for each in schema.fields
        ]
        self.of.wiring.spark().range(1).select(*columns).coalesce(1).write.parquet(str(folder))

    def _begin(self, into: Path) -> None:
        from backcast.streams.replay_start import begin

        if self._pin.batch is not None:
            begin(self._pin.checkpoint, self._pin.batch, into, files=self._pin.ordered)

    @property
    def _watermark(self) -> Watermark:
        return Watermark(self._pin.column, timedelta(seconds=self._pin.delay_seconds))

    @property
    def _input(self) -> InputPin:
        return next(each for each in self.inputs if each.name == self.of.stream.input)

    @property
    def _topic(self) -> Ranges:
        return () if self._input.log is None else self._input.log.ranges

    @property
    def _pin(self) -> ReplayPin:
        if self.manifest.replay is None:
            raise InvalidRequest(f"run {self.run_id} replays no stream")
        return self.manifest.replay


def replay_folder(project: Project, run_id: str) -> Path:
    """Where a run keeps what its replay has computed."""
    return project.root / ".backcast" / "replays" / run_id


def _marked(rows: DataFrame, watermark: Watermark) -> DataFrame:
    return rows.withWatermark(watermark.column, f"{int(watermark.delay.total_seconds())} seconds")
