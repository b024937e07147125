"""A declared stream, its topic, the user's transform and its table, wired together to be run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from backcast.model.document import canonical, sha256
from backcast.model.pipeline import Job, TableFormat
from backcast.model.scope import EVERYTHING
from backcast.model.source import LogSource
from backcast.model.states import Execution
from backcast.model.time import Interval

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from backcast.model.stream import StreamSpec
    from backcast.project.wiring import Wiring
    from backcast.streams.query import SparkQuery
    from backcast.targets.delta.live_write import DeltaLive
    from backcast.targets.iceberg.live_write import IcebergLive

ALWAYS = Interval(start=datetime(1, 1, 2, tzinfo=UTC), end=datetime(9999, 12, 30, tzinfo=UTC))
"""The window of a transform that runs live: no row lies out of it."""


def live_target(spec: StreamSpec) -> type[DeltaLive | IcebergLive]:
    """How batches land in the stream's table."""
    from backcast.targets.delta.live_write import DeltaLive
    from backcast.targets.iceberg.live_write import IcebergLive

    return DeltaLive if spec.dataset.format is TableFormat.DELTA else IcebergLive


def tables_now(world: Wiring, spec: StreamSpec) -> dict[str, str | None]:
    """Versions of the tables beside the topic, by the names of the inputs."""
    others = [each for each in spec.pipeline.inputs if not isinstance(each.dataset, LogSource)]
    return {each.name: world.source(each.dataset.name).facts().version for each in others}


def code_digest(world: Wiring, spec: StreamSpec) -> str:
    """Of the files of the project that the transform consists of."""
    return sha256(canonical(dict(world.transform(spec.pipeline.name).files)))


def live_query(
    world: Wiring,
    spec: StreamSpec,
    execution: Execution = Execution.LIVE,
    versions: Mapping[str, str | None] | None = None,
) -> SparkQuery:
    """Nothing is started and no checkpoint touched. Tables beside the topic are read as they are now, unless `versions`
    are given.
    """
    from backcast.sources.kafka.streaming import OBSERVED, UNDECODED, KafkaStream
    from backcast.streams.batch import Sink
    from backcast.streams.query import SparkQuery

    spark, pipeline = world.spark(), spec.pipeline
    access = world.project.kafka_access(spec.source.name)
    topic = KafkaStream(spark, access, spec.source, spec.starting, spec.most_per_trigger)
    tables = {each.name: each.dataset.name for each in pipeline.inputs if not isinstance(each.dataset, LogSource)}
    pinned = tables_now(world, spec) if versions is None else versions
    transform = world.transform(pipeline.name)
    kind = live_target(spec)

    def rows() -> DataFrame:
        stream = topic.frame()
        if spec.watermark is not None:
            delay = f"{int(spec.watermark.delay.total_seconds() * 1000)} milliseconds"
            stream = stream.withWatermark(spec.watermark.column, delay)
        beside = {name: world.source(dataset).read(pinned[name], EVERYTHING) for name, dataset in tables.items()}
        job = Job(run_id=f"stream:{spec.name}", execution=execution, window=ALWAYS, clock=world.clock.now())
        return transform.streamed({spec.input: stream, **beside}, job)

    sink = Sink(
        spec=spec,
        source=topic,
        engine=world.engine(),
        target=lambda session: kind(session, spec.dataset.table),
        identity=world.target(spec.dataset.name).facts().identity,
        transform=transform.reference,
        version=transform.version,
        tables=",".join(f"{tables[name]}@{version}" for name, version in pinned.items()) or None,
    )
    return SparkQuery(
        spark=spark,
        sink=sink,
        rows=rows,
        observed=(OBSERVED, UNDECODED),
        digest=lambda: code_digest(world, spec),
    )
