"""A topic of 64 partitions in which 691 messages are twice, some partitions are silent and times are out of order."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta

from backcast.control import ControlPlane
from backcast.model.pipeline import TableFormat
from backcast.model.request import Request
from backcast.model.states import RunState
from backcast.testing.orders import FIRST, Order, Orders, rows_of, spread

PARTITIONS, SILENT, TWICE = 64, 4, 691
SENT = [each for each in spread(3, 461) if each.id < 2 * TWICE]
COPIES = SENT[:TWICE]
EVERYTHING = Request(pipeline="orders", offsets="earliest", requested_by="tests")


def fill(orders: Orders) -> None:
    """Each partition holds its orders out of order by up to 40 minutes, and half of them twice; four hold nothing."""
    chance = random.Random(691)  # noqa: S311 - repeatable is the point
    written = [*SENT, *COPIES]
    disordered = sorted(written, key=lambda each: each.at + timedelta(minutes=chance.uniform(0, 40)))
    records = [each.record(each.id % (PARTITIONS - SILENT)) for each in disordered]
    orders.broker.produce(orders.topic, records)


def covered(control: ControlPlane, request: Request) -> tuple[str, str]:
    """Plan, run and publish it. The run, and what its verdict says about offsets."""
    plan = control.plan(request)
    assert not plan.refused, plan.findings
    run = control.run(plan.run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    verdict = control.world.reader().verdict(plan.run_id)
    assert verdict is not None
    (told,) = (check.detail for check in verdict.checks if check.name == "offsets covered")
    control.publish(plan.run_id)
    return plan.run_id, told


def without_key(orders: Orders) -> None:
    """As who has a table of events declares it: nothing in it need be there once."""
    file = orders.root / "backcast.yaml"
    file.write_text(file.read_text().replace("    key: [id]\n", ""))


def test_copies_are_records_for_an_append_and_one_row_for_a_merge(new_orders: Callable[..., Orders]) -> None:
    """Nobody guesses that a copy is a mistake; who declares a key and merges by it gets each order once."""
    orders = new_orders(partitions=PARTITIONS)
    fill(orders)
    once, twice = rows_of(SENT, "2026-01-01", "2026-02-01"), rows_of(COPIES, "2026-01-01", "2026-02-01")
    orders.configure(pipeline="publish: {mode: append}")
    without_key(orders)
    control = orders.open()
    run_id, told = covered(control, EVERYTHING)
    assert told == "2,073 offsets of 60 partitions: 2,073 rows"
    assert orders.rows() == once + twice
    control.undo(run_id)
    assert not orders.rows()
    orders.configure(pipeline="publish: {mode: merge}")
    covered(orders.open(), EVERYTHING)
    assert orders.rows() == once


def test_a_day_out_of_disordered_partitions_is_whole_and_its_copies_are_told(new_orders: Callable[..., Orders]) -> None:
    """Who declared a key is told that it is none before anybody can read it; who did not gets what the topic has."""
    orders = new_orders(partitions=PARTITIONS, table_format=TableFormat.DELTA)
    fill(orders)
    orders.spark.sql(f"INSERT INTO {orders.table} VALUES (7, 'bug', now(), 0.00, DATE'2026-01-02')")
    request = orders.request("2026-01-01", "2026-01-03")
    orders.configure(pipeline="chunks_per_job: 1")
    control = orders.open()
    rejected = control.run(control.plan(request).run_id)
    assert (rejected.state, rejected.detail) == (RunState.REJECTED, "key unique: 691 keys more than once, e.g. id=0")
    control.cancel(rejected.run_id)
    without_key(orders)
    covered(orders.open(), request)
    assert orders.rows() == rows_of([*SENT, *COPIES], "2026-01-01", "2026-01-03")


def test_partitions_added_after_the_plan_are_for_the_next_one(new_orders: Callable[..., Orders]) -> None:
    """The run reads what was planned, offset for offset; who plans again is shown all of them."""
    orders = new_orders(partitions=2)
    orders.configure(pipeline="publish: {mode: merge}")
    first = list(spread(1, 20))
    orders.send(first)
    control = orders.open()
    plan = control.plan(EVERYTHING)
    orders.broker.add_partitions(orders.topic, 5)
    later = [Order(1000 + number, FIRST + timedelta(days=1, hours=number)) for number in range(10)]
    for number, each in enumerate(later):
        orders.send([each], partition=number % 5)
    run = control.run(plan.run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    control.publish(plan.run_id)
    assert orders.rows() == rows_of(first, "2026-01-01", "2026-02-01")
    _, told = covered(control, EVERYTHING)
    assert told == "30 offsets of 5 partitions: 30 rows"
    assert orders.rows() == rows_of([*first, *later], "2026-01-01", "2026-02-01")
