"""Records that cannot be used are set aside, up to a budget, and come into the table once the cause is mended."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from backcast.errors import ChunkFailed, QuarantineFull, StateConflict
from backcast.model.pipeline import TableFormat
from backcast.model.quarantine import QuarantinedRun
from backcast.model.request import Request
from backcast.model.states import ChunkState, RunState
from backcast.plan.rejecting import without_rejected
from backcast.spark.engine import SparkEngine
from backcast.testing.orders import FIRST, Order, Orders, rows_of, spread

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from backcast.control import ControlPlane
    from backcast.ports import Sifted

REJECTING = """\
SELECT id, shop, at, amount, to_date(at) AS day, _kafka,
       CASE WHEN amount < 0 THEN concat('amount ', amount) END AS _rejected
FROM orders
"""
SUMS = """\
SELECT min(id) AS id, 'all' AS shop, min(at) AS at, CAST(sum(amount) AS DECIMAL(10,2)) AS amount, to_date(at) AS day,
       NULL AS _kafka, NULL AS _rejected
FROM orders WHERE amount >= 0 GROUP BY to_date(at)
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, _kafka, concat('amount ', amount) FROM orders WHERE amount < 0
"""
ANY_DAY = ("2026-01-01", "2027-01-01")


def poison(order: Order) -> bytes:
    """Its id as text, which is no BIGINT."""
    return json.dumps({"id": str(order.id), "shop": "S1", "at": order.at.isoformat(), "amount": order.amount}).encode()


def send_poisoned(orders: Orders, sent: list[Order], bad: set[int]) -> None:
    """In order, to one partition."""
    for each in sent:
        if each.id in bad:
            orders.send_raw(poison(each), at=each.at)
        else:
            orders.send([each], partition=0)


def place(orders: Orders, most: int) -> str:
    """A quarantine of the other format than the table's."""
    if orders.format is TableFormat.ICEBERG:
        return f"quarantine: {{path: lake/bad_orders, most: {most}}}"
    return f"quarantine: {{table: lake.{orders.topic.replace('-', '_')}.bad_orders, most: {most}}}"


def mend(orders: Orders) -> None:
    """Ids are declared as text, and read as numbers."""
    file, sql = orders.root / "backcast.yaml", orders.root / "models" / "orders.sql"
    file.write_text(file.read_text().replace('columns: "id BIGINT', 'columns: "id STRING'))
    sql.write_text("SELECT CAST(id AS BIGINT) AS id, shop, at, amount, to_date(at) AS day FROM orders\n")


def reject(orders: Orders, sql: str = REJECTING) -> None:
    (orders.root / "models" / "orders.sql").write_text(sql)


def covered(control: ControlPlane, run_id: str) -> str:
    verdict = control.world.reader().verdict(run_id)
    assert verdict is not None
    return next(each.detail for each in verdict.checks if each.name == "offsets covered")


def met(control: ControlPlane, run_id: str) -> QuarantinedRun:
    return next(each for each in control.quarantined() if each.run_id == run_id)


@pytest.mark.parametrize(
    ("mode", "table_format"), [("append", TableFormat.ICEBERG), ("merge", TableFormat.DELTA)], ids=str
)
def test_a_poisoned_record_is_appended_or_merged_once_after_the_declaration_was_mended(
    new_orders: Callable[..., Orders], mode: str, table_format: TableFormat
) -> None:
    """Of twelve that lie apart in one partition each comes once; one that still fails stays with the retry. Offsets
    bring whatever they hold; of a window only what lies in it, also when nobody could tell before.
    """
    orders = new_orders(table_format=table_format)
    orders.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{orders.topic.replace('-', '_')}")
    sent = list(spread(2, 30))
    bad = {each.id for each in sent[3:27:2]}
    send_poisoned(orders, sent, bad)
    next_day = Order(800, FIRST + timedelta(days=2, minutes=10))
    orders.send_raw(poison(next_day), b"{never", at=next_day.at)
    orders.configure(source=place(orders, 14), pipeline=f"publish: {{mode: {mode}}}")
    if mode == "append":
        request, asked, wanted = Request(pipeline="orders", offsets="0=2.."), sent[2:], [*sent[2:], next_day]
    else:
        request, asked, wanted = orders.request("2026-01-01", "2026-01-03"), sent, sent
    control = orders.open()
    run = control.run(control.plan(request).run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    assert "14 quarantined" in covered(control, run.run_id)
    with pytest.raises(StateConflict, match="is accepted: what it could use is not in the table yet"):
        control.retry_request(run.run_id)
    control.publish(run.run_id)
    good = [each for each in asked if each.id not in bad]
    assert orders.rows() == rows_of(good, *ANY_DAY)

    mend(orders)
    control = orders.open()
    request = control.retry_request(run.run_id, reason="ids are text")
    assert request.retries == run.run_id
    assert request.offsets == ",".join([*(f"0={offset}..{offset + 1}" for offset in range(3, 27, 2)), "0=60..62"])
    plan = control.plan(request)
    assert not [each for each in plan.findings if each.code.startswith("append.")], plan.findings
    with pytest.raises(StateConflict, match=f"run {plan.run_id} takes up what {run.run_id} set aside, and is planned"):
        control.retry_request(run.run_id)
    retried = control.run(plan.run_id)
    assert retried.state is RunState.ACCEPTED, retried.detail
    told = covered(control, plan.run_id)
    assert ("13 rows" if mode == "append" else "12 in the window") in told
    assert "1 quarantined" in told
    control.publish(plan.run_id)
    assert orders.rows() == rows_of(wanted, *ANY_DAY)
    assert met(control, run.run_id).retried_by == plan.run_id
    assert [each.value for each in control.quarantined_records(plan.run_id)] == ["{never"]
    with pytest.raises(StateConflict, match=f"run {plan.run_id} has taken up"):
        control.retry_request(run.run_id)
    control.undo(plan.run_id)
    assert orders.rows() == rows_of(good, *ANY_DAY)
    assert control.retry_request(run.run_id).offsets == request.offsets
    control.undo(run.run_id)
    with pytest.raises(StateConflict, match="was undone"):
        control.retry_request(run.run_id)


def test_the_days_that_a_poisoned_record_may_belong_to_are_replaced(new_orders: Callable[..., Orders]) -> None:
    """It has no event time as long as nobody can read it: with the slack, it may be of one day or of the next."""
    orders = new_orders()
    sent = list(spread(6, 10))
    late = Order(900, FIRST + timedelta(days=1, hours=23, minutes=50), late=timedelta(minutes=20))
    orders.send(each for each in sent if each.at < FIRST + timedelta(days=2))
    orders.send_raw(poison(late), at=late.at + late.late)
    orders.send(each for each in sent if each.at >= FIRST + timedelta(days=2))
    orders.configure(source=place(orders, 1), pipeline="chunks_per_job: 1")
    control = orders.open()
    run = control.backfill(orders.request("2026-01-01", "2026-01-06"))
    assert met(control, run.run_id).records == 1
    mend(orders)
    control = orders.open()
    request = control.retry_request(run.run_id)
    assert (str(request.start)[:10], str(request.end)[:10]) == ("2026-01-02", "2026-01-04")
    control.backfill(request)
    assert orders.rows() == rows_of([*sent, late], "2026-01-01", "2026-01-06")
    with pytest.raises(StateConflict, match="has set no record aside"):
        control.retry_request(control.list()[0].run_id)


def test_the_budget_is_that_of_the_run_and_ends_it(new_orders: Callable[..., Orders]) -> None:
    """Each of the chunks would be within it; what a repeated chunk met counts once."""
    orders = new_orders()
    for day in range(4):
        orders.send_raw(b"{broken", at=FIRST + timedelta(days=day, hours=12))
        orders.send([Order(day, FIRST + timedelta(days=day, hours=13))])
    orders.configure(source=place(orders, 2), pipeline="chunks_per_job: 1")
    control = orders.open()
    plan = control.plan(orders.request("2026-01-01", "2026-01-05"))
    told = r"1 record of topic \S+ cannot be decoded after 2 in other chunks, and 2 are allowed in a run: partition 0"
    for again in (control.run, control.retry):
        with pytest.raises(QuarantineFull, match=told) as error:
            again(plan.run_id)
        assert f"backcast cancel {plan.run_id}" in error.value.hint
        states = [each.state for each in control.world.reader().chunks(plan.run_id)]
        assert states == [ChunkState.STAGED, ChunkState.STAGED, ChunkState.FAILED, ChunkState.PENDING]
    status = control.status(plan.run_id)
    assert (status.run.state, status.next_command) == (RunState.FAILED, f"backcast cancel {plan.run_id}")
    assert "raise `most` under sources.orders.quarantine" in status.because
    control.cancel(plan.run_id)
    orders.configure(source=place(orders, 4), pipeline="chunks_per_job: 1")
    control = orders.open()
    run = control.backfill(orders.request("2026-01-01", "2026-01-05"))
    assert (met(control, run.run_id).records, len(control.quarantined_records(run.run_id))) == (4, 4)


@pytest.mark.parametrize("mode", ["replace", "append", "merge"])
def test_records_that_the_transform_rejects_are_set_aside(new_orders: Callable[..., Orders], mode: str) -> None:
    """With their reason and their bytes, beside one that cannot be decoded; each is counted by one chunk alone."""
    orders = new_orders()
    sent = list(spread(4, 10))
    negative = [
        Order(901, FIRST + timedelta(days=1, hours=6), "-5.00"),
        Order(902, FIRST + timedelta(days=1, hours=23, minutes=55), "-6.00", late=timedelta(minutes=30)),
    ]
    third = FIRST + timedelta(days=2)
    orders.send(each for each in [*sent, *negative] if each.at + each.late < third)
    orders.send_raw(b"{broken", at=third)
    orders.send(each for each in [*sent, *negative] if each.at + each.late >= third)
    configured = f"chunks_per_job: 1\npublish: {{mode: {mode}}}"
    request = orders.request() if mode == "replace" else Request(pipeline="orders", offsets="earliest")
    wanted = rows_of(sent, "2026-01-02", "2026-01-04") if mode == "replace" else rows_of(sent, *ANY_DAY)

    orders.configure(pipeline=configured)
    reject(orders)
    control = orders.open()
    plan = control.plan(request)
    with pytest.raises(ChunkFailed, match=r"the transform rejects .* and there is no quarantine .*amount -\d.00"):
        control.run(plan.run_id)
    control.cancel(plan.run_id)

    orders.configure(source=place(orders, 3), pipeline=configured)
    reject(orders)
    control = orders.open()
    run = control.run(control.plan(request).run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    assert "(2 of them rejected by the transform), " in covered(control, run.run_id)
    control.publish(run.run_id)
    assert orders.rows() == wanted
    assert (met(control, run.run_id).records, met(control, run.run_id).rejected) == (3, 2)
    kept = {each.reason: json.loads(each.value or "")["id"] for each in control.quarantined_records(run.run_id)
            if each.reason.startswith("amount")}  # fmt: skip
    assert kept == {"amount -5.00": 901, "amount -6.00": 902}

    orders.configure(source=place(orders, 3), pipeline=configured)
    control = orders.open()
    control.backfill(control.retry_request(run.run_id))
    assert orders.rows() == wanted + rows_of(negative, *ANY_DAY)


def test_what_was_rejected_is_counted_by_a_scan_when_the_count_was_lost(new_orders: Callable[..., Orders]) -> None:
    class Forgetful(SparkEngine):
        def sifted(self, rows: DataFrame, columns: frozenset[str], topics: frozenset[str]) -> Sifted:
            return replace(super().sifted(rows, columns, topics), count=lambda: None, strangers=lambda: None)

    orders = new_orders()
    orders.send([*spread(1, 5), Order(901, FIRST, "-5.00")], partition=0)
    orders.configure(source=place(orders, 1), pipeline="publish: {mode: append}")
    reject(orders)
    control = orders.open()
    engine = Forgetful()
    control.world.engine = lambda: engine  # type: ignore[method-assign]  # the rest of the world is the real one
    run = control.run(control.plan(Request(pipeline="orders", offsets="earliest")).run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    assert "(1 of them rejected by the transform)" in covered(control, run.run_id)


def test_rejecting_without_the_position_is_refused_before_anything_runs(new_orders: Callable[..., Orders]) -> None:
    orders = new_orders()
    orders.send(spread(3, 5))
    refused = {
        REJECTING.replace("day, _kafka,", "day,"): "rejected.no-position",
        REJECTING.replace("concat('amount ', amount)", "1"): "rejected.type",
    }
    for sql, code in refused.items():
        reject(orders, sql)
        plan = orders.open().plan(orders.request())
        assert [each.code for each in plan.findings if each.severity == "block"] == [code]


def test_a_column_of_that_name_is_refused_without_a_topic_and_left_alone_where_the_table_has_it(
    spark: SparkSession,
) -> None:
    rows, engine = spark.sql("SELECT 1 AS id, 'why' AS _rejected"), SparkEngine()
    columns = engine.analyse(rows).columns
    _, found = without_rejected(engine, rows, columns[:1], ())
    assert [each.code for each in found] == ["rejected.no-topic"]
    same, found = without_rejected(engine, rows, columns, ())
    assert (same.columns, found) == (["id", "_rejected"], [])


def test_rows_that_are_made_of_many_records_reject_some_of_them_beside(new_orders: Callable[..., Orders]) -> None:
    """The input is read twice then, so that what became of each offset is settled by a scan."""
    orders = new_orders()
    sent = list(spread(3, 10))
    orders.send([*sent, Order(901, FIRST + timedelta(days=1, hours=6), "-5.00")])
    orders.configure(source=place(orders, 1))
    reject(orders, SUMS)
    control = orders.open()
    run = control.run(control.plan(orders.request()).run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    assert "(1 of them rejected by the transform)" in covered(control, run.run_id)
    control.publish(run.run_id)
    sums: Counter[str] = Counter()
    for each in sent[10:]:
        sums[f"{each.at:%Y-%m-%d}"] += int(Decimal(each.amount) * 100)
    assert {day: int(Decimal(str(amount)) * 100) for _, day, amount in orders.rows()} == dict(sums)


def test_a_record_that_was_never_read_cannot_be_rejected(new_orders: Callable[..., Orders]) -> None:
    """Its row would be neither in the table nor in the quarantine."""
    orders = new_orders()
    orders.send(spread(3, 5), partition=0)
    orders.configure(source=place(orders, 9))
    made_up = "named_struct('topic', _kafka.topic, 'partition', 7, 'offset', 0L) AS _kafka"
    reject(orders, REJECTING.replace("_kafka,", f"{made_up},").replace("amount < 0", "id = 6"))
    control = orders.open()
    plan = control.plan(orders.request())
    assert not plan.refused, plan.findings
    with pytest.raises(ChunkFailed, match="rejects 1 record with a `_kafka` that is not of topic"):
        control.run(plan.run_id)
    assert orders.rows() == Counter()
