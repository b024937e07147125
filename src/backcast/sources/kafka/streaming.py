"""A declared topic as a stream: the records and the decoding of a batch read, without an end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backcast.model.coverage import Status
from backcast.model.source import KafkaAccess, LogSource
from backcast.sources.kafka.decode import PROBLEM, RAW, SCHEMA_ID, STATUS, decode
from backcast.sources.kafka.read import raw_column
from backcast.sources.kafka.writers import Schemas, find_schemas
from backcast.spark.predicates import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OURS = (PROBLEM, STATUS, SCHEMA_ID)


def stream_records(
    spark: SparkSession,
    access: KafkaAccess,
    source: LogSource,
    starting: str | Mapping[int, int],
    most_per_trigger: int | None = None,
) -> DataFrame:
    """The columns of `decode.RAW`. `starting` counts only while the query has no checkpoint."""
    first = (
        starting if isinstance(starting, str) else json.dumps({source.topic: {str(k): v for k, v in starting.items()}})
    )
    options = {
        **access.spark,
        "kafka.bootstrap.servers": access.servers,
        "kafka.isolation.level": source.isolation,
        "subscribe": source.topic,
        "startingOffsets": first,
        "failOnDataLoss": "true",
        "includeHeaders": "true",
        "groupIdPrefix": "backcast",
        **({} if most_per_trigger is None else {"maxOffsetsPerTrigger": str(most_per_trigger)}),
    }
    frame = spark.readStream.format("kafka").options(**options).load()
    return frame.selectExpr(*(f"{raw_column(name)} AS {quote(name)}" for name in RAW))


def stream_rows(
    records: DataFrame, access: KafkaAccess, source: LogSource, schemas: Schemas | None = None
) -> DataFrame:
    """What a transform sees of them: decoded rows, tombstones where they are wanted, nothing that cannot be decoded."""
    found = schemas or find_schemas(source, access)
    wanted = [Status.ROW, *([Status.TOMBSTONE] if source.tombstones else [])]
    rows = decode(records, source, found.value, found.key)
    return rows.where(F.col(STATUS).isin(*(each.value for each in wanted))).drop(*OURS)
