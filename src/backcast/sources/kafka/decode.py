"""Records as rows: the decoded columns, where each record came from, and what is wrong with it.

No record fails a task. Columns of a record that could not be decoded hold whatever came out of it, so nobody may use a
row before looking at `_status`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest
from backcast.model.coverage import Status
from backcast.model.quarantine import POSITION
from backcast.model.source import Encoding, LogSource
from backcast.sources.kafka.decode_avro import decode_avro
from backcast.sources.kafka.decode_json import decode_json
from backcast.sources.kafka.decoded import KEY, VALUE, Decoded, Side
from backcast.sources.kafka.writers import Writers
from backcast.spark.predicates import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PROBLEM, STATUS, DECODED_KEY, SCHEMA_ID = "_problem", "_status", "_key", "_schema_id"
POSITION_FIELDS = ("topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers")
RAW = {
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "timestamp": "TIMESTAMP",
    "timestamp_type": "INT",
    "key": "BINARY",
    "value": "BINARY",
    "headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
}
"""A record as the log has it, which is all that decoding needs; an archive keeps the same."""


def decode(records: DataFrame, source: LogSource, writers: Writers | None, key_writers: Writers | None) -> DataFrame:
    """Decoded columns, `_key` where keys have a format, struct `_kafka`, `_problem`, `_status`, and for Avro by a
    registry `_schema_id`. `records` has the columns of `RAW`.
    """
    raw = records.selectExpr(*(f"{quote(name)} AS __{name}" for name in RAW))
    value = _decoded(raw, source, VALUE, writers)
    keyed = source.key.encoding is not Encoding.RAW
    key = _decoded(value.frame, source, KEY, key_writers) if keyed else None
    frame = value.frame if key is None else key.frame
    wrong = [f"(__value IS NOT NULL AND NOT ({value.sound}))"]
    if key is not None:
        wrong.append(f"(__key IS NOT NULL AND NOT ({key.sound}))")
    checked = frame.selectExpr("*", f"{' OR '.join(wrong)} AS __wrong")
    return checked.selectExpr(
        *(f"{sql} AS {quote(name)}" for name, sql in _named(value.columns, keyed=keyed).items()),
        *([f"if(__key IS NULL, NULL, {_struct(key.columns)}) AS {DECODED_KEY}"] if key else []),
        f"struct({', '.join(f'__{name} AS {quote(name)}' for name in POSITION_FIELDS)}) AS {POSITION}",
        f"CASE WHEN __wrong THEN {_problem(value, key)} END AS {PROBLEM}",
        f"CASE WHEN __wrong THEN '{Status.QUARANTINED}' WHEN __value IS NULL THEN '{Status.TOMBSTONE}' "
        f"ELSE '{Status.ROW}' END AS {STATUS}",
        *([f"{_schema_id(value)} AS {SCHEMA_ID}"] if value.counted else []),
    )


def _decoded(frame: DataFrame, source: LogSource, side: Side, writers: Writers | None) -> Decoded:
    layout = source.value if side is VALUE else source.key
    match layout.encoding:
        case Encoding.JSON:
            return decode_json(frame, layout, side)
        case Encoding.AVRO:
            if writers is None:
                raise InvalidRequest(f"the {side.word} of topic {source.topic} is Avro without a schema")
            return decode_avro(frame, writers, side)
        case Encoding.RAW:
            return Decoded(frame, {"value": side.column}, "true", "''")


def _named(columns: dict[str, str], *, keyed: bool) -> dict[str, str]:
    """A declared column must not be called like one of ours."""
    ours = {POSITION, PROBLEM, STATUS, SCHEMA_ID} | ({DECODED_KEY} if keyed else set())
    if taken := sorted(ours & columns.keys()):
        raise InvalidRequest(f"columns of a record cannot be called {', '.join(taken)}", hint="rename the field")
    return columns


def _struct(columns: dict[str, str]) -> str:
    return f"struct({', '.join(f'{sql} AS {quote(name)}' for name, sql in columns.items())})"


def _problem(value: Decoded, key: Decoded | None) -> str:
    if key is None:
        return value.problem
    parts = [
        f"if({each} IS NULL OR {one.sound}, NULL, {one.problem})" for each, one in (("__value", value), ("__key", key))
    ]
    return f"concat_ws('; ', {', '.join(parts)})"


def _schema_id(value: Decoded) -> str:
    return f"CASE {' '.join(f'WHEN {sql} THEN {number}' for number, sql in value.counted.items())} END"
