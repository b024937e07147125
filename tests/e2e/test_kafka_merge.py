"""Records merged by key: the newest wins, whatever order they come in, and a tombstone takes its row away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest

from backcast.model.pipeline import TableFormat
from backcast.model.request import Request
from backcast.model.states import RunState
from backcast.testing.kafka_records import Record
from backcast.testing.orders import FIRST, Order, Orders

MODEL = """\
SELECT coalesce(id, CAST(CAST(_kafka.key AS STRING) AS BIGINT)) AS id,
       shop,
       coalesce(at, _kafka.timestamp) AS at,
       amount,
       to_date(coalesce(at, _kafka.timestamp)) AS day,
       _kafka.value IS NULL AS gone
FROM orders
"""


@pytest.mark.parametrize("table_format", TableFormat)
def test_an_old_record_never_beats_a_newer_row_and_tombstones_delete(
    new_orders: Callable[..., Orders], table_format: TableFormat
) -> None:
    orders = new_orders(partitions=1, table_format=table_format)
    orders.configure(source="tombstones: rows", pipeline="publish: {mode: merge, deletes: gone}")
    (orders.root / "models" / "orders.sql").write_text(MODEL)
    hours = [FIRST + timedelta(hours=each) for each in range(10)]
    # In the table: 1 is older than what comes, 2 is newer, 3 will be deleted, 4 is nobody's business.
    there = ((1, hours[0]), (2, hours[9]), (3, hours[1]), (4, hours[1]))
    rows = ", ".join(f"({number}, 'old', TIMESTAMP'{at.isoformat()}', 1.00, DATE'2026-01-01')" for number, at in there)
    orders.spark.sql(f"INSERT INTO {orders.table} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
    sent = [
        Order(1, hours[3], "3.00"),
        Order(1, hours[2], "2.00"),
        Order(2, hours[5], "5.00"),
        Order(5, hours[4], "4.00"),
        Order(6, hours[4], "6.00"),
    ]
    orders.broker.produce(orders.topic, [each.record(0) for each in sent])
    for number in (3, 6, 7):
        late = int(hours[8].timestamp() * 1000)
        orders.broker.produce(orders.topic, [Record(None, key=str(number), timestamp=late, partition=0)])
    control = orders.open()
    request = Request(pipeline="orders", offsets="earliest", requested_by="tests")
    plan = control.plan(request)
    assert not plan.refused, plan.findings
    run = control.run(plan.run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    verdict = control.validate(plan.run_id)
    assert verdict.accepted, verdict.checks
    told = {check.name: check.detail for check in verdict.checks}
    assert told["merged by key"] == "1 inserted, 1 replaced, 1 removed, 1 stayed, 2 absent"
    before = orders.rows()
    control.publish(plan.run_id)
    day = "2026-01-01"
    assert orders.rows() == Counter([(1, day, "3.00"), (2, day, "1.00"), (4, day, "1.00"), (5, day, "4.00")])
    again = control.run(control.plan(request).run_id)
    assert again.state is RunState.ACCEPTED, again.detail
    control.publish(again.run_id)
    assert orders.rows() == Counter([(1, day, "3.00"), (2, day, "1.00"), (4, day, "1.00"), (5, day, "4.00")])
    control.undo(again.run_id)
    control.undo(plan.run_id)
    assert orders.rows() == before
