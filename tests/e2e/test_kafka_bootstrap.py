"""A bootstrap fills an empty table from a topic, and a stream that starts where it ends reads every record once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from backcast.errors import InvalidRequest, Refused
from backcast.model.finding import Severity
from backcast.model.live import stream_lease
from backcast.model.pipeline import TableFormat
from backcast.model.report import Plan
from backcast.model.request import Kind, Request
from backcast.run.lease import acquire
from backcast.testing.faults import at_point
from backcast.testing.orders import Orders, rows_of, spread
from tests.e2e.test_stream import EVERYTHING, Died, caught_up, die

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


@pytest.mark.parametrize(
    ("table_format", "archive"), [(TableFormat.DELTA, "path: lake/archive"), (TableFormat.ICEBERG, "files: sink")]
)
def test_a_declared_stream_begins_by_itself_where_history_from_an_archive_ended(
    new_orders: Callable[..., Orders], table_format: TableFormat, archive: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker has deleted the beginning, records come between all steps, a partition is added, the start dies."""
    monkeypatch.setattr("backcast.sources.kafka.input._RECORDS_A_CHUNK", 20)
    orders = new_orders(table_format=table_format)
    orders.configure(source=f"archive: {{{archive}}}", pipeline="publish: {mode: append}")
    sent = list(spread(6, 10))
    orders.send(sent[:20], partition=0)
    orders.send(sent[20:30], partition=1)
    control = orders.open()
    if archive.startswith("files"):
        _write_files(orders)
    else:
        control.archive("orders")
    orders.broker.delete_records(orders.topic, {0: 15, 1: 5})
    orders.send(sent[30:35], partition=0)
    plan = control.plan(BOOTSTRAP)
    assert not plan.refused, plan.findings
    assert len(plan.manifest.chunks) == 2
    with pytest.raises(Refused, match="is planned: it could not be published behind rows of stream live"):
        caught_up(orders)
    orders.send(sent[35:45], partition=1)
    control.run(plan.run_id)
    orders.send(sent[45:50], partition=2)
    control.publish(plan.run_id)
    assert orders.rows() == rows_of(sent[:35], *EVERYTHING)
    found = control.hand_over(plan.run_id)
    assert (found.offsets, found.streams) == ({0: 25, 1: 10, 2: 0}, ("live",))
    orders.broker.add_partitions(orders.topic, 4)
    orders.send(sent[50:55], partition=3)
    with at_point("stream.before-intent", die), pytest.raises(Died):
        caught_up(orders)
    orders.send(sent[55:], partition=0)
    first = caught_up(orders).batches[-1]
    assert {each.partition: each.start for each in first.offsets} == {**found.offsets, 3: 0}
    assert orders.rows() == rows_of(sent, *EVERYTHING)


def _write_files(orders: Orders) -> None:
    """What somebody else's sink has of the topic."""
    read = orders.spark.read.format("kafka").option("kafka.bootstrap.servers", orders.broker.servers)
    records = read.option("subscribe", orders.topic).option("includeHeaders", "true").load()
    columns = ["topic", "partition", "offset", "timestamp", "key", "value", "headers"]
    records.select(*columns).coalesce(1).write.parquet(str(orders.root / "sink"))


def test_a_stream_that_would_read_again_what_a_bootstrap_has_read_does_not_start(orders: Orders) -> None:
    """One that runs while it is published, one that stands before its end, one that is told to begin elsewhere."""
    caught_up(orders)
    sent = list(spread(2, 10))
    orders.send(sent[:10], partition=0)
    control = orders.open()
    run_id = control.plan(BOOTSTRAP).run_id
    control.run(run_id)
    world = control.world
    leases, name = world.store().leases, stream_lease("live")
    with (
        acquire(leases, name, world.holder(), world.clock, world.ended),
        pytest.raises(Refused, match="stream live runs, and may be about to write what the run has read"),
    ):
        control.publish(run_id)
    control.publish(run_id)
    orders.send(sent[10:], partition=1)
    with pytest.raises(Refused, match="up to 0=10,1=0,2=0, and stream live would read from 0=0,1=0,2=0 on"):
        caught_up(orders)
    shutil.rmtree(orders.root / ".checkpoints")
    for starting in ("latest", json.dumps({orders.topic: {"0": 9, "1": 0, "2": 0}})):
        orders.configure(pipeline="publish: {mode: append}", stream=f"starting: '{starting}'")
        with pytest.raises(Refused, match="up to 0=10,1=0,2=0, and stream live would read from") as told:
            caught_up(orders)
        assert "without `starting` it begins behind the run by itself" in told.value.hint
    by_hand = json.dumps(control.hand_over(run_id).starting_offsets)
    orders.configure(
        pipeline="publish: {mode: append}", stream=f"starting: '{by_hand}'\nwatermark: {{column: at, delay: 1h}}"
    )
    row_by_row = _group(orders)
    with pytest.raises(Refused, match=r"without state: its transform makes a row of several records \(groups them\)"):
        caught_up(orders)
    _model(orders).write_text(row_by_row)
    caught_up(orders)
    assert orders.rows() == rows_of(sent, *EVERYTHING)


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
    """A table with rows, a part of the topic, a window of time, a pipeline that replaces or keeps state, a run that is
    none.
    """
    orders.send(spread(1, 10), partition=0)
    control = orders.open()
    row_by_row = _group(orders)
    assert _blocks(control.plan(BOOTSTRAP)) == ["bootstrap.keeps-state"]
    by_offsets = BOOTSTRAP.model_copy(update={"kind": Kind.REPAIR, "offsets": "0=0..5"})
    assert _blocks(control.plan(by_offsets)) == ["append.keeps-state"]
    assert not control.plan(orders.request("2026-01-01", "2026-01-02"), record=False).refused, "of whole windows"
    _model(orders).write_text(row_by_row)
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


def _model(orders: Orders) -> Path:
    return orders.root / "models" / "orders.sql"


def _group(orders: Orders) -> str:
    """Windows instead of rows. What the model was before."""
    before = _model(orders).read_text()
    columns = "min(id) AS id, shop, window.start AS at, max(amount) AS amount, to_date(window.start) AS day"
    _model(orders).write_text(
        f"WITH o AS (SELECT * FROM orders) SELECT {columns} FROM o GROUP BY shop, window(at, '1 day')"
    )
    return before


def _blocks(plan: Plan) -> list[str]:
    return [each.code for each in plan.findings if each.severity is Severity.BLOCK]
