"""A bootstrap fills an empty table from a topic, and a stream that starts where it ends reads every record once."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from backcast.errors import InvalidRequest, Refused
from backcast.model.request import Kind, Request
from backcast.testing.orders import Orders, rows_of, spread

BOOTSTRAP = Request(pipeline="orders", kind=Kind.BOOTSTRAP, requested_by="tests")


@pytest.fixture
def orders(new_orders: Callable[..., Orders]) -> Orders:
    made = new_orders()
    made.configure(pipeline="publish: {mode: append}")
    return made


def test_a_stream_goes_on_exactly_where_a_bootstrap_ended(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that arrive between plan and publish are the stream's; one partition is still empty at the hand-over."""
    monkeypatch.setattr("backcast.sources.kafka.input._RECORDS_A_CHUNK", 20)
    sent = list(spread(5, 10))
    orders.send(sent[:20], partition=0)
    orders.send(sent[20:30], partition=1)
    control = orders.open()
    plan = control.plan(BOOTSTRAP)
    assert len(plan.manifest.chunks) == 2
    orders.send(sent[30:40], partition=1)
    orders.send(sent[40:], partition=2)
    control.run(plan.run_id)
    control.publish(plan.run_id)
    assert orders.rows() == rows_of(sent[:30], "2026-01-01", "2026-02-01")
    found = control.hand_over(plan.run_id)
    assert found.offsets == {0: 20, 1: 10, 2: 0}
    _stream(orders, json.dumps(found.starting_offsets))
    assert orders.rows() == rows_of(sent, "2026-01-01", "2026-02-01")
    control.undo(plan.run_id)
    with pytest.raises(Refused, match="would miss all records before"):
        control.hand_over(plan.run_id)


def _stream(orders: Orders, starting_offsets: str) -> None:
    """A stream as its owner would write it, up to what is there."""
    columns = "id BIGINT, shop STRING, at TIMESTAMP, amount DECIMAL(10,2)"
    read = orders.spark.readStream.format("kafka").options(
        **{
            "kafka.bootstrap.servers": orders.broker.servers,
            "subscribe": orders.topic,
            "startingOffsets": starting_offsets,
        }
    )
    decoded = read.load().selectExpr(f"from_json(CAST(value AS STRING), '{columns}') AS order").select("order.*")
    rows = decoded.selectExpr("id", "shop", "at", "amount", "to_date(at) AS day")
    query = (
        rows.writeStream.format("iceberg")
        .option("checkpointLocation", str(orders.root / "checkpoint"))
        .trigger(availableNow=True)
        .toTable(orders.table)
    )
    assert query.awaitTermination(120)


def test_what_cannot_be_handed_over_is_refused(orders: Orders) -> None:
    """A table with rows, a part of the topic, a window of time, a pipeline that replaces, a run that is none."""
    orders.send(spread(1, 10), partition=0)
    control = orders.open()
    with pytest.raises(InvalidRequest, match="partition 1 is not asked for"):
        control.plan(BOOTSTRAP.model_copy(update={"offsets": "0=0..5"}))
    with pytest.raises(InvalidRequest, match="from its first record on"):
        control.plan(orders.request().model_copy(update={"kind": Kind.BOOTSTRAP}))
    plan = control.plan(BOOTSTRAP.model_copy(update={"kind": Kind.REPLAY, "offsets": "earliest"}))
    with pytest.raises(Refused, match="no bootstrap"):
        control.hand_over(plan.run_id)
    control.run(plan.run_id)
    control.publish(plan.run_id)
    refused = control.plan(BOOTSTRAP)
    assert not refused.recorded
    assert "has 10 rows already" in next(each.reason for each in refused.findings if each.code == "bootstrap.not-empty")
    orders.configure()
    with pytest.raises(InvalidRequest, match="at exact offsets"):
        orders.open().plan(BOOTSTRAP)
