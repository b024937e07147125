"""A replay that dies again and again: every record of the topic is in the table once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from backcast.control import ControlPlane
from backcast.model.pipeline import TableFormat
from backcast.model.request import Request
from backcast.model.states import RunState
from backcast.project.config import load_project
from backcast.testing.faults import SimulatedCrash, crash_at
from backcast.testing.orders import Orders, rows_of, spread
from tests.crash.life import DoomedWiring

DEATHS = {
    "run": ("chunk.before-commit", "chunk.after-commit", "chunk.after-record", "run.before-staged"),
    "publish": ("publish.before-commit", "publish.after-commit", "publish.after-record"),
}
LIVE = (1000, "2026-01-01", "9.00")


def test_slices_of_a_topic_are_appended_once_whatever_dies(
    new_orders: Callable[..., Orders], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is removed by an append, so nothing but its fence and its tokens keeps a repeat from doubling rows."""
    monkeypatch.setattr("backcast.sources.kafka.input._RECORDS_A_CHUNK", 12)
    orders = new_orders()
    orders.configure(pipeline="publish: {mode: append}")
    sent = list(spread(3, 12))
    orders.send(sent)
    orders.spark.sql(
        f"INSERT INTO {orders.table} VALUES (1000, 'S', TIMESTAMP'2026-01-01 00:00:00Z', 9.00, DATE'2026-01-01')"
    )
    plan = orders.open().plan(Request(pipeline="orders", offsets="earliest", requested_by="tests"))
    assert [chunk.id for chunk in plan.manifest.chunks] == ["slice-1", "slice-2", "slice-3"]
    for verb, points in DEATHS.items():
        for point in points:
            control = ControlPlane(DoomedWiring(load_project(orders.root)))
            with crash_at(point), pytest.raises(SimulatedCrash, match=point):
                getattr(control, verb)(plan.run_id)
        done = getattr(orders.open(), verb)(plan.run_id)
        assert verb == "publish" or done.state is RunState.ACCEPTED, done.detail
    assert orders.rows() == rows_of(sent, "2026-01-01", "2026-02-01") + Counter([LIVE])
    orders.open().undo(plan.run_id)
    assert orders.rows() == Counter([LIVE])


@pytest.mark.parametrize("table_format", TableFormat)
def test_a_merge_that_died_behind_its_commit_is_what_it_would_have_been(
    new_orders: Callable[..., Orders], table_format: TableFormat
) -> None:
    """Who repeats it finds its own rows on the stage, nothing to do, and still has to account for all of them."""
    orders = new_orders(table_format=table_format)
    orders.configure(pipeline="publish: {mode: merge}")
    sent = list(spread(3, 12))
    orders.send(sent)
    plan = orders.open().plan(Request(pipeline="orders", offsets="earliest", requested_by="tests"))
    with crash_at("chunk.after-commit"), pytest.raises(SimulatedCrash):
        ControlPlane(DoomedWiring(load_project(orders.root))).run(plan.run_id)
    done = orders.open().run(plan.run_id)
    assert done.state is RunState.ACCEPTED, done.detail
    orders.open().publish(plan.run_id)
    assert orders.rows() == rows_of(sent, "2026-01-01", "2026-02-01")


def test_what_is_staged_already_may_be_gone_from_the_log(
    new_orders: Callable[..., Orders], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that died goes on with what it still needs, though retention has taken what it has staged before."""
    monkeypatch.setattr("backcast.sources.kafka.input._RECORDS_A_CHUNK", 12)
    orders = new_orders(partitions=1)
    orders.configure(pipeline="publish: {mode: append}")
    sent = list(spread(2, 12))
    orders.send(sent)
    plan = orders.open().plan(Request(pipeline="orders", offsets="earliest", requested_by="tests"))
    with crash_at("chunk.after-record"), pytest.raises(SimulatedCrash):
        ControlPlane(DoomedWiring(load_project(orders.root))).run(plan.run_id)
    orders.broker.delete_records(orders.topic, {0: 12})
    run = orders.open().run(plan.run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    orders.open().publish(plan.run_id)
    assert orders.rows() == rows_of(sent, "2026-01-01", "2026-02-01")
