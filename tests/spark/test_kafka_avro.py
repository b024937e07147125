"""Avro records are read by the schema that wrote each of them; whatever does not fit exactly is quarantined."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import fastavro
import pytest

from backcast.errors import InvalidRequest, Unavailable, UnknownName
from backcast.model.source import Encoding, KafkaAccess, Layout, LogSource
from backcast.sources.kafka.coverage import observed_log
from backcast.sources.kafka.read import read_log
from backcast.sources.kafka.writers import find_schemas, find_writers
from backcast.testing.kafka_records import Record
from tests.spark.kafka_kit import access, all_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.testing.kafka import KafkaBroker
    from backcast.testing.registry import SchemaRegistry

_ID = {"name": "id", "type": "long"}
_NOTE = {"name": "note", "type": ["null", "string"], "default": None}
_PRICE = {
    "name": "price",
    "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
    "default": "",
}


def _schema(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "namespace": "shop", "fields": list(fields)}


def _written(schema: dict[str, Any], record: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), record)
    return out.getvalue()


def test_each_record_is_read_with_the_version_that_wrote_it(
    spark: SparkSession, broker: KafkaBroker, registry: SchemaRegistry
) -> None:
    """A field was an int, then a long; another came later, a third went. Rows look like the newest version."""
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

    topic = broker.create_topic("avro-orders")
    client = SchemaRegistryClient({"url": registry.url})
    old = _schema({"name": "id", "type": "int"}, {"name": "gone", "type": "string", "default": ""})
    versions = [old, _schema(_ID), _schema(_ID, _NOTE)]
    ids = [client.register_schema(f"{topic}-value", Schema(json.dumps(each), "AVRO")) for each in versions]
    unused = client.register_schema(
        f"{topic}-value", Schema(json.dumps(_schema(_ID, _NOTE, _NOTE | {"name": "more"})), "AVRO")
    )
    written = [
        b"\0" + number.to_bytes(4) + _written(schema, record)
        for number, schema, record in zip(
            ids, versions, [{"id": 1, "gone": "x"}, {"id": 2}, {"id": 3, "note": "n"}], strict=True
        )
    ]
    bad = [
        written[2][:-1],
        written[2] + b"\0",
        b"\1" + written[2][1:],
        b"\0\0",
        b"",
        b"\0" + (99_999).to_bytes(4) + b"\2",
        b"\0" + ids[2].to_bytes(4) + b"\2\2\xfe\xff\xff\xff\x0f",
    ]
    broker.produce(topic, [Record(each) for each in [*written, *bad]] + [Record(None, "k")])
    source = LogSource(name="o", topic=topic, value=Layout(Encoding.AVRO, registry=registry.url))
    schemas = find_schemas(source, access(broker))
    writers = schemas.value
    assert writers is not None
    assert writers.versions == {number: version for version, number in enumerate([*ids, unused], start=1)}

    ranges = all_of(broker, topic)
    frame = read_log(spark, access(broker), source, ranges, schemas)
    counted, read = observed_log(frame, ranges, schema_ids=writers.by_id)
    rows = sorted(counted.collect(), key=lambda row: row["_kafka"]["offset"])

    assert [(row["id"], row["note"], row["more"], row["_problem"]) for row in rows[:3]] == [
        (1, None, None, None),
        (2, None, None, None),
        (3, "n", None, None),
    ]
    no_fit, no_id = (
        f"the value does not fit its Avro schema, id {ids[2]}",
        "the value does not start with the id of a schema",
    )
    unknown = f"schema id 99999 is not in the registry under subject {topic}-value"
    assert [row["_problem"] for row in rows[3:]] == [no_fit, no_fit, no_id, no_id, no_id, unknown, no_fit, None]
    assert rows[-1]["_status"] == "tombstone"
    seen = read()
    assert seen is not None
    assert seen.schema_ids == {ids[0]: 1, ids[1]: 1, ids[2]: 4}

    with pytest.raises(UnknownName, match="knows no subject nobody"):
        find_writers(Layout(Encoding.AVRO, registry=registry.url, subject="nobody"), topic, "value", access(broker))


def test_records_without_an_id_are_read_by_a_schema_file(spark: SparkSession, broker: KafkaBroker) -> None:
    from decimal import Decimal

    topic = broker.create_topic("avro-plain")
    schema = _schema(_ID, _NOTE, _PRICE)
    good = _written(schema, {"id": 5, "note": None, "price": Decimal("1.25")})
    broker.produce(topic, [Record(good), Record(good + b"x"), Record(b"")])
    layout = Layout(Encoding.AVRO, json.dumps(schema))
    frame = read_log(spark, access(broker), LogSource(name="o", topic=topic, value=layout), all_of(broker, topic))
    rows = sorted(frame.collect(), key=lambda row: row["_kafka"]["offset"])
    assert (rows[0]["id"], rows[0]["price"], rows[0]["_status"]) == (5, Decimal("1.25"), "row")
    assert [row["_problem"] for row in rows] == [None, *["the value does not fit its Avro schema"] * 2]


def test_a_schema_that_cannot_become_columns_and_a_silent_registry_are_told() -> None:
    nowhere = Layout(Encoding.AVRO, registry="http://127.0.0.1:9")
    with pytest.raises(Unavailable, match="does not answer"):
        find_writers(nowhere, "t", "value", KafkaAccess("", registry={"max.retries": "0"}))
    with pytest.raises(InvalidRequest, match="not an Avro record"):
        find_writers(Layout(Encoding.AVRO, '"string"'), "t", "value", KafkaAccess(""))
    with pytest.raises(InvalidRequest, match="neither a registry nor a schema file"):
        find_writers(Layout(Encoding.AVRO), "t", "value", KafkaAccess(""))
