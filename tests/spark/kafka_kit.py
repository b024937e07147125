"""What the tests of the Kafka reader share: sources over a broker's topics, and what a job over one left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.model.coverage import Coverage, GapPolicy, Observed, seen
from backcast.model.log import Isolation, OffsetRange, Ranges
from backcast.model.source import Encoding, KafkaAccess, Layout, LogSource
from backcast.sources.kafka.coverage import expected_positions, observed_log, scan_coverage
from backcast.sources.kafka.read import read_log, read_records

if TYPE_CHECKING:
    from typing import Any

    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from backcast.testing.kafka import KafkaBroker

RAW = Layout(Encoding.RAW)


def json_source(topic: str, schema: str, **more: Any) -> LogSource:
    return LogSource(name=topic, topic=topic, value=Layout(Encoding.JSON, schema), **more)


def access(broker: KafkaBroker) -> KafkaAccess:
    return KafkaAccess(broker.servers)


def all_of(broker: KafkaBroker, topic: str, *, committed: bool = False) -> Ranges:
    """Every offset that the topic has now."""
    starts, ends = broker.start_offsets(topic), broker.end_offsets(topic, committed=committed)
    return tuple(OffsetRange(partition=each, start=starts[each], end=ends[each]) for each in sorted(starts))


def replay(
    spark: SparkSession,
    broker: KafkaBroker,
    source: LogSource,
    ranges: Ranges,
    in_window: Column | None = None,
    cleanup: frozenset[str] = frozenset({"delete"}),
) -> tuple[list[Row], Coverage]:
    """All records by position, and the proof, as a run gets them."""
    frame = read_log(spark, access(broker), source, ranges)
    counted, read = observed_log(frame, ranges, in_window)
    rows = counted.collect()
    policy = GapPolicy("compact" in cleanup, source.transactional, source.isolation)

    def uncommitted(gaps: Ranges) -> DataFrame:
        return read_records(spark, access(broker), source, gaps, Isolation.UNCOMMITTED)

    covered = proven(spark, ranges, read()) or scan_coverage(frame, ranges, policy, in_window, uncommitted)
    return sorted(rows, key=lambda row: (row["_kafka"]["partition"], row["_kafka"]["offset"])), covered


def proven(spark: SparkSession, ranges: Ranges, observed: Observed | None) -> Coverage | None:
    """The proof out of what was counted alone."""
    return None if observed is None else seen(ranges, observed, expected_positions(spark, ranges))
