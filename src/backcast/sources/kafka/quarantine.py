"""Records that could not be decoded: kept with their position, the reason and their bytes. One copy for each run.

A repeated chunk replaces what it kept before. Chunks that are cut by time may read the same record, which is why the
replaced part is given by offsets and not by chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from backcast.model.coverage import Status
from backcast.model.log import Ranges
from backcast.model.quarantine import QuarantinedRecord
from backcast.sources.kafka.decode import POSITION, PROBLEM, STATUS
from backcast.spark.gateway import find_cause, is_jvm_error, jvm_errors
from backcast.spark.predicates import balanced, text_literal

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


@dataclass(frozen=True, slots=True)
class Part:
    """What a run keeps of one topic's offsets."""

    run_id: str
    topic: str
    ranges: Ranges

    @property
    def condition(self) -> str:
        offsets = [
            f"(`partition` = {each.partition} AND `offset` >= {each.start}L AND `offset` < {each.end}L)"
            for each in self.ranges
            if each.span
        ]
        within = balanced(offsets, lambda left, right: f"({left} OR {right})") if offsets else "false"
        return f"run_id = {text_literal(self.run_id)} AND topic = {text_literal(self.topic)} AND {within}"


def write_quarantine(
    spark: SparkSession, table: str, part: Part, frame: DataFrame | None, chunks: tuple[str, ...], at: datetime
) -> int:
    """Keep the quarantined records of a decoded frame instead of what was kept of that part before; how many they are.

    Without a frame there are none, and only what was kept before goes.
    """
    with jvm_errors("keeping records that could not be decoded", table=table):
        if frame is not None:
            spark.sql(_definition(table))
        elif not _exists(spark, table):
            return 0
        if not spark.table(table).where(part.condition).isEmpty():
            _repeated(lambda: spark.sql(f"DELETE FROM {table} WHERE {part.condition}"))
        if frame is None:
            return 0
        rows = _rows(frame, part.run_id, chunks, at)
        _repeated(lambda: rows.writeTo(table).append())
        return spark.table(table).where(part.condition).count()


def read_quarantine(spark: SparkSession, table: str, run_id: str) -> DataFrame:
    """The records that the run kept, by position; none when no run ever kept one."""
    with jvm_errors("reading records that could not be decoded", table=table):
        if not _exists(spark, table):
            return spark.range(0).selectExpr(*(f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in _COLUMNS.items()))
        rows = spark.table(table).where(F.col("run_id") == run_id)
        return rows.dropDuplicates(["topic", "partition", "offset"]).orderBy("topic", "partition", "offset")


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
    found = frame.where(F.col(STATUS) == Status.QUARANTINED.value)
    return found.selectExpr(*(f"{made[name]} AS `{name}`" for name in _COLUMNS))


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
