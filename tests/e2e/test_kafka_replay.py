"""A window of event time, replayed from a real topic by exact offsets; and proof that nothing is missing or doubled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from typing import TYPE_CHECKING

import pytest

from backcast.errors import ChunkFailed, Drifted, Refused
from backcast.model.digest import Digest
from backcast.model.pipeline import TableFormat
from backcast.model.request import Request
from backcast.model.states import RunState
from backcast.spark.engine import SparkEngine
from backcast.testing.orders import FIRST, Order, Orders, rows_of, spread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.control import ControlPlane

on_both_formats = pytest.mark.parametrize("orders", TableFormat, indirect=True)


@pytest.fixture
def orders(new_orders: Callable[..., Orders], request: pytest.FixtureRequest) -> Orders:
    """Into an Iceberg table, unless the test is parametrised with a format."""
    return new_orders(table_format=getattr(request, "param", TableFormat.ICEBERG))


def check_of(control: ControlPlane, run_id: str, name: str) -> tuple[bool, str]:
    verdict = control.world.reader().verdict(run_id)
    assert verdict is not None
    return next((each.passed, each.detail) for each in verdict.checks if each.name == name)


@on_both_formats
def test_two_days_are_replayed_and_every_offset_is_accounted_for(orders: Orders) -> None:
    """With a late order, a tombstone and orders of other days among the offsets that are read."""
    sent = [*spread(5, 20), Order(900, FIRST + timedelta(days=1, hours=23, minutes=50), late=timedelta(minutes=30))]
    orders.send(each for each in sent if each.at < FIRST + timedelta(days=2))
    orders.send_raw(None, at=FIRST + timedelta(days=2))
    orders.send(each for each in sent if each.at >= FIRST + timedelta(days=2))
    control = orders.open()
    plan = control.plan(orders.request())
    assert not plan.refused, plan.findings
    run = control.run(plan.run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    passed, told = check_of(control, plan.run_id, "offsets covered")
    assert passed
    assert "41 in the window" in told
    assert "1 tombstone" in told.split(", ")
    (pin,) = plan.manifest.inputs
    assert pin.log is not None
    asked = {name: sum(each.span for each in part.ranges) for name, part in pin.log.slices.items()}
    chunks = control.world.reader().chunks(plan.run_id)
    assert {each.chunk_id: each.inputs[0].rows for each in chunks} == asked
    control.publish(plan.run_id)
    assert orders.rows() == rows_of(sent, "2026-01-02", "2026-01-04")
    assert control.backfill(orders.request("2026-01-01", "2026-01-06")).version
    assert orders.rows() == rows_of(sent, "2026-01-01", "2026-01-06")


def test_days_that_are_no_neighbours_share_a_job_and_own_what_they_read_each(orders: Orders) -> None:
    """The offsets in between belong to nobody: neither their rows nor their counts may slip in."""
    sent = list(spread(9, 20))
    orders.send(sent)
    control = orders.open()
    days = (date(2026, 1, 2), date(2026, 1, 3), date(2026, 1, 7))
    plan = control.plan(Request(pipeline="orders", dates=days, requested_by="tests"))
    run = control.run(plan.run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    assert len(control.world.reader().stage_records(plan.run_id)) == 1
    assert "60 in the window" in check_of(control, plan.run_id, "offsets covered")[1]
    control.publish(plan.run_id)
    wanted = rows_of(sent, "2026-01-02", "2026-01-04") + rows_of(sent, "2026-01-07", "2026-01-08")
    assert orders.rows() == wanted


def test_a_record_beyond_the_slack_of_its_chunk_rejects_the_run(orders: Orders) -> None:
    """It lies among the offsets of a later day, whose chunk does not take it: counted there, and missed here."""
    sent = [*spread(4, 20), Order(900, FIRST + timedelta(days=1), late=timedelta(hours=40))]
    orders.send(sent, partition=0)
    orders.configure(pipeline="chunks_per_job: 1")
    control = orders.open()
    run = control.run(control.plan(orders.request()).run_id)
    assert run.state is RunState.REJECTED
    assert "1 of 41 records in the window lie beyond the slack" in run.detail
    control.cancel(run.run_id)
    orders.configure(pipeline="chunks_per_job: 1", source="to_end: true")
    control = orders.open()
    control.backfill(orders.request())
    assert orders.rows() == rows_of(sent, "2026-01-02", "2026-01-04")


def test_what_cannot_be_decoded_fails_the_chunk_unless_it_has_a_place(orders: Orders) -> None:
    sent = list(spread(3, 10))
    orders.send(sent[:15])
    orders.send_raw(b"{not json", at=FIRST + timedelta(days=1, hours=5))
    orders.send(sent[15:])
    control = orders.open()
    plan = control.plan(orders.request())
    with pytest.raises(ChunkFailed, match=r"1 record of topic \S+ cannot be decoded, and there is no quarantine"):
        control.run(plan.run_id)
    control.cancel(plan.run_id)
    kept = orders.table.replace(".orders", ".bad_orders")
    orders.configure(source=f"quarantine: {{table: {kept}, most: 1}}")
    control = orders.open()
    plan = control.plan(orders.request())
    assert control.run(plan.run_id).state is RunState.ACCEPTED
    assert "1 quarantined" in check_of(control, plan.run_id, "offsets covered")[1]
    control.publish(plan.run_id)
    assert orders.rows() == rows_of(sent, "2026-01-02", "2026-01-04")
    found = orders.spark.table(kept).collect()
    assert [(row["run_id"], bytes(row["value"])) for row in found] == [(plan.run_id, b"{not json")]
    assert [(each.run_id, each.input, each.records) for each in control.quarantined()] == [(plan.run_id, "orders", 1)]
    (record,) = control.quarantined_records(plan.run_id)
    assert (record.topic, record.partition, record.value) == (orders.topic, 0, "{not json")
    assert record.reason


def test_retention_and_a_topic_that_was_made_again_stop_a_run_before_it_reads(orders: Orders) -> None:
    orders.send(spread(4, 10), partition=0)
    control = orders.open()
    plan = control.plan(orders.request())
    orders.broker.delete_records(orders.topic, {0: 15})
    with pytest.raises(Drifted, match="retention has removed offsets 10 to 15 of partition 0"):
        control.run(plan.run_id)
    refused = control.plan(orders.request("2026-01-01", "2026-01-04"))
    assert [each.code for each in refused.findings if each.severity == "block"] == ["log.partial"]
    orders.broker.delete_topic(orders.topic)
    orders.broker.create_topic(orders.topic, 3)
    orders.send(spread(6, 10), partition=0)
    with pytest.raises(Drifted, match="deleted and made again"):
        control.run(plan.run_id)


def test_an_append_whose_observation_was_lost_is_judged_by_its_own_files(orders: Orders) -> None:
    """The branch also shows the rows that were there before: they are not what the run wrote."""

    class Forgetful(SparkEngine):
        def observed(self, rows: DataFrame) -> tuple[DataFrame, Callable[[], Digest | None]]:
            return super().observed(rows)[0], lambda: None

    orders.spark.sql(f"INSERT INTO {orders.table} VALUES (1, 'S', current_timestamp(), 1.00, DATE'2026-01-01')")
    orders.send(spread(1, 10), partition=0)
    orders.configure(pipeline="publish: {mode: append}")
    control = orders.open()
    engine = Forgetful()
    control.world.engine = lambda: engine  # type: ignore[method-assign]  # the rest of the world is the real one
    run = control.run(control.plan(Request(pipeline="orders", offsets="0=2..7", requested_by="tests")).run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    (record,) = control.world.reader().stage_records(run.run_id)
    assert record.digest.rows == 5
    assert control.validate(run.run_id).accepted


@on_both_formats
def test_exact_offsets_are_appended_once_beside_live_rows(orders: Orders) -> None:
    """A second run over the same offsets with the same code is refused; live rows never matter to an append."""
    sent = list(spread(3, 10))
    orders.send(sent, partition=0)
    orders.configure(pipeline="publish: {mode: append}")
    control = orders.open()
    request = Request(pipeline="orders", offsets="0=5..12", reason="gap", requested_by="tests")
    plan = control.plan(request)
    assert not plan.refused, plan.findings
    run = control.run(plan.run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    assert check_of(control, plan.run_id, "offsets covered") == (True, "7 offsets of 1 partition: 7 rows")
    orders.spark.sql(f"INSERT INTO {orders.table} VALUES (1000, 'S', current_timestamp(), 1.00, DATE'2026-01-01')")
    control.publish(plan.run_id)
    wanted = rows_of(sent[5:12], "2026-01-01", "2027-01-01") + Counter([(1000, "2026-01-01", "1.00")])
    assert orders.rows() == wanted
    again = control.plan(request)
    assert [each.code for each in again.findings if each.severity == "block"] == ["append.already-there"]
    control.undo(plan.run_id)
    assert orders.rows() == Counter([(1000, "2026-01-01", "1.00")])
    assert not control.plan(request).refused


def test_of_two_equal_appends_that_were_planned_before_either_landed_one_is_published(orders: Orders) -> None:
    """Nothing is removed by an append, so that the table itself would take both."""
    orders.send(spread(1, 10), partition=0)
    orders.configure(pipeline="publish: {mode: append}")
    control = orders.open()
    wanted = Request(pipeline="orders", offsets="0=2..7", requested_by="ana")
    plans = [control.plan(wanted.model_copy(update={"requested_by": name})) for name in ("ana", "ben")]
    for plan in plans:
        assert control.run(plan.run_id).state is RunState.ACCEPTED
    control.publish(plans[0].run_id)
    with pytest.raises(Refused, match="has appended exactly these offsets with exactly this code, since"):
        control.publish(plans[1].run_id)
    assert orders.rows().total() == 5
    control.undo(plans[0].run_id)
    control.publish(plans[1].run_id)
    assert orders.rows().total() == 5
