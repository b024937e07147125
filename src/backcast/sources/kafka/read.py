"""A pinned part of a topic as a frame. Only literal offsets reach Spark: any other are bound anew by every task.

No consumer group is joined and nothing is committed; the prefix only names our consumers in the brokers' logs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from backcast.model.log import Isolation, Ranges, span
from backcast.model.source import KafkaAccess, LogSource
from backcast.sources.kafka.decode import RAW, decode
from backcast.sources.kafka.writers import Schemas, find_schemas
from backcast.spark.predicates import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from backcast.sources.kafka.archive import Archived

POLL_SECONDS = 60
"""Spark's default of two minutes is how long a run would hang on offsets that are not there."""
FETCHING = {
    # A broker holds an empty answer back for half a second, and every task's last question has one.
    "kafka.fetch.max.wait.ms": "20",
    # After every poll Spark asks where the partition starts and ends, and forgets what was fetched ahead. So a poll
    # takes much more than the 500 records of Kafka's default; its bytes bound what it holds in memory.
    "kafka.max.poll.records": "20000",
    "kafka.max.partition.fetch.bytes": str(8 * 1024 * 1024),
}
_LEAST_PER_TASK = 50_000
_TASKS_PER_CORE = 4


def read_log(
    spark: SparkSession,
    access: KafkaAccess,
    source: LogSource,
    ranges: Ranges,
    schemas: Schemas | None = None,
    archived: Archived | None = None,
) -> DataFrame:
    """The records of these ranges, decoded: see `decode`. Registry schemas are looked up unless they are given."""
    found = schemas or find_schemas(source, access)
    return decode(read_records(spark, access, source, ranges, archived=archived), source, found.value, found.key)


def read_records(
    spark: SparkSession,
    access: KafkaAccess,
    source: LogSource,
    ranges: Ranges,
    isolation: Isolation | None = None,
    archived: Archived | None = None,
) -> DataFrame:
    """The records of these ranges as the log has them, or had them: the columns of `decode.RAW`."""
    old = None if archived is None else archived.part(ranges)
    if archived is None or old is None:
        return _from_log(spark, access, source, ranges, isolation)
    rest = archived.rest(ranges)
    return old.unionByName(_from_log(spark, access, source, rest, isolation)) if span(rest) else old


def _from_log(
    spark: SparkSession, access: KafkaAccess, source: LogSource, ranges: Ranges, isolation: Isolation | None
) -> DataFrame:
    wanted = tuple(each for each in ranges if each.span)
    if not wanted:
        return spark.range(0).selectExpr(*(f"CAST(NULL AS {kind}) AS {quote(name)}" for name, kind in RAW.items()))
    options = {
        **FETCHING,
        # Before what follows, so that none of it can be changed by them.
        **access.spark,
        "kafka.bootstrap.servers": access.servers,
        "kafka.isolation.level": isolation or source.isolation,
        "assign": json.dumps({source.topic: [each.partition for each in wanted]}),
        "startingOffsets": json.dumps({source.topic: {str(each.partition): each.start for each in wanted}}),
        "endingOffsets": json.dumps({source.topic: {str(each.partition): each.end for each in wanted}}),
        "failOnDataLoss": "true",
        "includeHeaders": "true",
        "groupIdPrefix": "backcast",
        "kafkaConsumer.pollTimeoutMs": str(POLL_SECONDS * 1000),
        "maxRecordsPerPartition": str(_per_task(spark, wanted)),
    }
    frame = spark.read.format("kafka").options(**options).load()
    return frame.selectExpr(*(f"{column(name)} AS {quote(name)}" for name in RAW))


def _per_task(spark: SparkSession, ranges: Ranges) -> int:
    """A long partition is read by several tasks, none of which is so short that its start is what it costs."""
    tasks = _TASKS_PER_CORE * spark.sparkContext.defaultParallelism
    return max(_LEAST_PER_TASK, -(-span(ranges) // tasks))


def column(name: str) -> str:
    """What Spark's connector calls a column of `RAW`."""
    return "timestampType" if name == "timestamp_type" else quote(name)
