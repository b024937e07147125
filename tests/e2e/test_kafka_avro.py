"""Avro by a registry: old versions are read as the plan said, and the versions that were met are on record."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import fastavro
import pytest

from backcast.errors import Drifted
from backcast.model.request import Request
from backcast.model.states import RunState
from backcast.testing.kafka_records import Record
from backcast.testing.orders import FIRST, Orders

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

    from backcast.testing.registry import SchemaRegistry

_ID = {"name": "id", "type": "long"}
_AT = {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}}
_SHOP = {"name": "shop", "type": "string", "default": "none"}
_PRICE = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
_AMOUNT = {"name": "amount", "type": ["null", _PRICE], "default": None}


def _schema(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "Order", "fields": list(fields)}


def _register(client: SchemaRegistryClient, topic: str, schema: dict[str, Any]) -> int:
    from confluent_kafka.schema_registry import Schema

    return client.register_schema(f"{topic}-value", Schema(json.dumps(schema), "AVRO"))


def _record(schema_id: int, schema: dict[str, Any], **order: Any) -> Record:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"at": FIRST, **order})
    return Record(b"\0" + schema_id.to_bytes(4) + out.getvalue(), timestamp=int(FIRST.timestamp() * 1000), partition=0)


def test_a_version_that_comes_after_the_plan_changes_nothing(
    new_orders: Callable[..., Orders], registry: SchemaRegistry
) -> None:
    """Records of both versions become rows of the second, even when a third one without a column is newest by then."""
    from confluent_kafka.schema_registry import SchemaRegistryClient

    orders, client = new_orders(), SchemaRegistryClient({"url": registry.url})
    text = (orders.root / "backcast.yaml").read_text()
    before = next(line for line in text.splitlines() if "value:" in line)
    place = f'registry: {{url: "{registry.url}"}}, subject: {orders.topic}-value'
    value = f"    value: {{format: avro, {place}}}"
    (orders.root / "backcast.yaml").write_text(text.replace(before, value))
    versions = [_schema(_ID, _AT), _schema(_ID, _AT, _SHOP, _AMOUNT)]
    ids = [_register(client, orders.topic, each) for each in versions]
    records = [_record(ids[0], versions[0], id=number) for number in range(3)]
    records += [_record(ids[1], versions[1], id=number, shop="S1", amount=None) for number in range(3, 5)]
    orders.broker.produce(orders.topic, records)
    control = orders.open()
    first, second = (
        control.plan(Request(pipeline="orders", start="2026-01-01", end=end, requested_by="tests"))
        for end in ("2026-01-02", "2026-01-03")
    )
    _register(client, orders.topic, _schema(_ID, _AT, _AMOUNT))
    run = control.run(first.run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    verdict = control.world.reader().verdict(first.run_id)
    assert verdict is not None
    told = next(each.detail for each in verdict.checks if each.name == "offsets covered")
    assert told.endswith(f"; {orders.topic}-value: 3 records of version 1, 2 records of version 2")
    control.publish(first.run_id)
    shops = orders.spark.sql(f"SELECT shop, count(*) FROM {orders.table} GROUP BY shop").collect()
    assert {row[0]: row[1] for row in shops} == {"none": 3, "S1": 2}
    client.delete_version(f"{orders.topic}-value", 2)
    with pytest.raises(Drifted, match=r"version 2 of subject .* is gone from the registry"):
        control.run(second.run_id)
