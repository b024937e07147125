"""Avro, each record by the schema that wrote it, projected to the reader schema by Avro's own rules of resolution.

Spark's decoder answers bad bytes with a row of nulls, and ignores bytes that are left over. So a record is read as the
first field of a frame whose second field is a known end, put behind the record's bytes: only who read exactly the
record's bytes finds it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from backcast.sources.kafka.decoded import Decoded, Side
from backcast.sources.kafka.writers import Writers
from backcast.spark.gateway import jvm_errors
from backcast.spark.predicates import quote, text_literal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_END = b"\x8fbackcst"
_END_SQL = f"X'{_END.hex()}'"
_HEADER = 5


def decode_avro(frame: DataFrame, writers: Writers, side: Side) -> Decoded:
    """The fields of the reader schema as columns."""
    read = side.named("read")
    with jvm_errors("reading the Avro schema"):
        second = frame.withColumn(read, _read(writers, side))
        names = [field["name"] for field in json.loads(writers.reader)["fields"]]
        columns = {name: f"{read}.value.{quote(name)}" for name in names}
        return Decoded(
            second,
            columns,
            f"coalesce({read}.end = {_END_SQL}, false)",
            _problem(writers, side),
            {number: _starts(side, number) for number in writers.by_id},
        )


def _read(writers: Writers, side: Side) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.avro.functions import from_avro

    options = {"mode": "PERMISSIVE", "avroSchema": _framed(writers.reader)}
    if not writers.by_id:
        whole = F.expr(f"concat({side.column}, {_END_SQL})")
        return from_avro(whole, _framed(writers.reader), options)
    rest = F.expr(f"concat(substring({side.column}, {_HEADER + 1}), {_END_SQL})")
    (first, writer), *others = writers.by_id.items()
    cases = F.when(F.expr(_starts(side, first)), from_avro(rest, _framed(writer), options))
    for number, schema in others:
        cases = cases.when(F.expr(_starts(side, number)), from_avro(rest, _framed(schema), options))
    return cases


def _framed(schema: str) -> str:
    end = {"type": "fixed", "name": "backcast_end", "size": len(_END)}
    fields = [{"name": "value", "type": json.loads(schema)}, {"name": "end", "type": end}]
    return json.dumps({"type": "record", "name": "backcast_frame", "fields": fields})


def _starts(side: Side, number: int) -> str:
    """Whether the bytes start as Confluent's clients write the id of a schema."""
    return f"(substring({side.column}, 1, {_HEADER}) = X'00{number.to_bytes(4).hex()}')"


def _problem(writers: Writers, side: Side) -> str:
    bytes_ = side.column
    if not writers.by_id:
        return f"'the {side.word} does not fit its Avro schema'"
    number = f"conv(hex(substring({bytes_}, 2, 4)), 16, 10)"
    known = " OR ".join(_starts(side, each) for each in writers.by_id)
    unknown = text_literal(f" is not in the registry under subject {writers.subject}")
    return (
        f"CASE WHEN octet_length({bytes_}) < {_HEADER} OR substring({bytes_}, 1, 1) <> X'00' "
        f"THEN 'the {side.word} does not start with the id of a schema' "
        f"WHEN {known} THEN concat('the {side.word} does not fit its Avro schema, id ', {number}) "
        f"ELSE concat('schema id ', {number}, {unknown}) END"
    )
