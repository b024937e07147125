"""Records that could not be used: kept with their position, the reason and their bytes. One copy for each run.

Only added to. What a repeated chunk finds there already is not written again; a process that was given up and still
writes may double a record, which readers do not see.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from backcast.model.log import OffsetRange, Ranges
from backcast.model.pieces import pieces
from backcast.model.quarantine import POSITION, QuarantinedRecord
from backcast.sources.kafka.decode import PROBLEM
from backcast.spark.gateway import find_cause, is_jvm_error, jvm_errors
from backcast.spark.predicates import text_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_COLUMNS = {
    "run_id": "STRING",
    "chunk": "STRING",
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "record_time": "TIMESTAMP",
    "reason": "STRING",
    "key": "BINARY",
    "value": "BINARY",
    "headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
    "at": "TIMESTAMP",
}
_PLACE = ["topic", "partition", "offset"]
_LOST_RACES = frozenset(
    {
        "CommitFailedException",
        "ConcurrentAppendException",
        "ConcurrentDeleteDeleteException",
        "ConcurrentDeleteReadException",
        "ConcurrentWriteException",
        "MetadataChangedException",
        "ValidationException",
    }
)
_NO_DELTA_TABLE = ("DELTA_MISSING_DELTA_TABLE", "DELTA_PATH_DOES_NOT_EXIST", "DELTA_TABLE_NOT_FOUND")
_ATTEMPTS = 8


def write_quarantine(
    spark: SparkSession, table: str, run_id: str, frame: DataFrame, chunks: tuple[str, ...], at: datetime
) -> None:
    """Keep every record of a frame that has a position and the problem with it."""
    with jvm_errors("keeping records that could not be used", table=table):
        spark.sql(_definition(table))
        there = spark.table(table).where(F.col("run_id") == run_id).select(*_PLACE)
        rows = _rows(frame, run_id, chunks, at).join(there, _PLACE, "left_anti").select(*_COLUMNS)
        _repeated(lambda: rows.writeTo(table).append())


def read_quarantine(spark: SparkSession, table: str, run_id: str) -> DataFrame:
    """The records that the run kept, by position; none when no run ever kept one."""
    with jvm_errors("reading records that could not be used", table=table):
        if not _exists(spark, table):
            return spark.range(0).selectExpr(*(f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in _COLUMNS.items()))
        rows = spark.table(table).where(F.col("run_id") == run_id)
        return rows.dropDuplicates(_PLACE).orderBy(*_PLACE)


def kept_offsets(spark: SparkSession, table: str, run_id: str, topic: str) -> Ranges:
    """Where in the topic the records lie that the run kept; any number of ranges of each partition."""
    found = read_quarantine(spark, table, run_id).where(F.col("topic") == topic).select("partition", "offset").collect()
    return pieces(
        [tuple(OffsetRange(partition=partition, start=offset, end=offset + 1) for partition, offset in found)]
    )


def shown_records(spark: SparkSession, table: str, run_id: str, limit: int) -> list[QuarantinedRecord]:
    """The first of them, for people."""
    rows = read_quarantine(spark, table, run_id).limit(limit).collect()
    return [
        QuarantinedRecord(
            topic=row["topic"],
            partition=row["partition"],
            offset=row["offset"],
            record_time=None if row["record_time"] is None else row["record_time"].astimezone(UTC),
            reason=row["reason"],
            key=_text(row["key"]),
            value=_text(row["value"]),
        )
        for row in rows
    ]


def _text(data: bytes | None) -> str | None:
    return None if data is None else bytes(data).decode(errors="replace")


def _definition(table: str) -> str:
    columns = ", ".join(f"`{name}` {kind}" for name, kind in _COLUMNS.items())
    kind = "delta" if table.lower().startswith("delta.`") else "iceberg"
    return f"CREATE TABLE IF NOT EXISTS {table} ({columns}) USING {kind} PARTITIONED BY (run_id)"


def _exists(spark: SparkSession, table: str) -> bool:
    from pyspark.errors import AnalysisException

    try:
        return bool(spark.catalog.tableExists(table))
    except AnalysisException as error:
        # Delta raises for a folder without a log what a catalog answers with no.
        if any(word in str(error) for word in _NO_DELTA_TABLE):
            return False
        raise


def _rows(frame: DataFrame, run_id: str, chunks: tuple[str, ...], at: datetime) -> DataFrame:
    position = {name: f"{POSITION}.`{name}`" for name in ("topic", "partition", "offset", "key", "value", "headers")}
    made = {
        **position,
        "run_id": text_literal(run_id),
        "chunk": text_literal(", ".join(chunks)),
        "record_time": f"{POSITION}.timestamp",
        "reason": PROBLEM,
        "at": f"TIMESTAMP '{at.astimezone(UTC).isoformat(timespec='microseconds')}'",
    }
    return frame.selectExpr(*(f"{made[name]} AS `{name}`" for name in _COLUMNS))


def _repeated(commit: Callable[[], object]) -> None:
    """Other chunks of the run write to the same table; who loses the race comes again."""
    for attempt in Retrying(
        retry=retry_if_exception(_lost_race),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_random_exponential(multiplier=0.1, max=5),
        reraise=True,
    ):
        with attempt:
            commit()


def _lost_race(error: BaseException) -> bool:
    return is_jvm_error(error) and find_cause(error, _LOST_RACES) is not None
