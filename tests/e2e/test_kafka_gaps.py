"""Offsets that hold nothing: transactions, compaction and retention, from the plan to the table on a real broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from backcast.errors import ChunkFailed, Drifted
from backcast.model.request import Request
from backcast.model.states import RunState
from backcast.testing.faults import at_point
from backcast.testing.kafka_records import Record
from backcast.testing.orders import FIRST, Order, Orders, rows_of, spread

if TYPE_CHECKING:
    from backcast.control import ControlPlane

SENT = list(spread(1, 23))
COMMITTED, ABORTED, MORE, OPEN = SENT[:10], SENT[10:16], SENT[16:20], SENT[20:]
EVERYTHING = Request(pipeline="orders", offsets="earliest", requested_by="tests")
APPEND, MERGE = "publish: {mode: append}", "publish: {mode: merge}"


def records(orders: Iterable[Order]) -> list[Record]:
    return [each.record(0) for each in orders]


def all_of(*orders: Order) -> Counter[tuple[object, ...]]:
    return rows_of(orders, "2026-01-01", "2027-01-01")


def covered(control: ControlPlane, run_id: str) -> str:
    verdict = control.world.reader().verdict(run_id)
    assert verdict is not None
    return next(check.detail for check in verdict.checks if check.name == "offsets covered")


def test_transactions_under_both_isolation_levels(new_orders: Callable[..., Orders]) -> None:
    """Committed, aborted, committed, and one that nobody has decided about. Each level: what its readers may see."""
    orders = new_orders(partitions=1)
    orders.broker.transaction(orders.topic, records(COMMITTED))
    orders.broker.transaction(orders.topic, records(ABORTED), commit=False)
    orders.broker.transaction(orders.topic, records(MORE))
    told = {
        "read_committed": "23 offsets of 1 partition: 14 rows, 3 transaction markers, 6 aborted",
        "read_uncommitted": "26 offsets of 1 partition: 23 rows, 3 transaction markers",
    }
    seen = {"read_committed": all_of(*COMMITTED, *MORE), "read_uncommitted": all_of(*SENT)}
    with orders.broker.open_transaction(orders.topic, records(OPEN)):
        for level, rows in seen.items():
            orders.configure(source=f"isolation: {level}\ntransactional: true", pipeline=APPEND)
            control = orders.open()
            run = control.run(control.plan(EVERYTHING).run_id)
            assert run.state is RunState.ACCEPTED, run.detail
            assert covered(control, run.run_id) == told[level]
            control.publish(run.run_id)
            assert orders.rows() == rows
            control.undo(run.run_id)


def test_markers_of_transactions_that_nobody_declared_are_holes(new_orders: Callable[..., Orders]) -> None:
    orders = new_orders(partitions=1)
    orders.broker.transaction(orders.topic, records(COMMITTED))
    orders.configure(pipeline=APPEND)
    control = orders.open()
    run = control.run(control.plan(EVERYTHING).run_id)
    assert run.state is RunState.REJECTED
    assert "no record at 1 offset, the first is 10, and nothing about the topic explains it" in run.detail
    assert not orders.rows()


def test_compaction_between_plan_and_run_is_explained(new_orders: Callable[..., Orders]) -> None:
    """What is left of a key is what the topic still says about it; what went is counted."""
    orders = new_orders(partitions=1, cleanup_policy="compact")
    orders.configure(pipeline=MERGE)
    versions = [Order(number % 3, FIRST + timedelta(hours=number), f"{number}.00") for number in range(20)]
    orders.send(versions, partition=0)
    control = orders.open()
    plan = control.plan(EVERYTHING)
    assert not plan.refused, plan.findings
    orders.broker.compact(orders.topic)
    run = control.run(plan.run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    assert covered(control, plan.run_id) == "20 offsets of 1 partition: 3 rows, 17 compacted away"
    control.publish(plan.run_id)
    assert orders.rows() == all_of(*versions[-3:])


def test_retention_that_passes_after_the_plan_stops_the_run(new_orders: Callable[..., Orders]) -> None:
    """By time, as the broker itself does it. A plan that comes later is refused and names what is missing."""
    orders = new_orders(partitions=1, segment_ms=1_000)
    orders.configure(pipeline=APPEND)
    now, day = datetime.now(UTC), timedelta(days=1)
    for age in (3, 1):
        orders.send([Order(10 * age + number, now - age * day) for number in range(5)], partition=0)
    control = orders.open()
    request = Request(pipeline="orders", offsets="0=0..10", requested_by="tests")
    plan = control.plan(request)
    orders.broker.expire(orders.topic, 2 * 86_400_000, {0: 5})
    with pytest.raises(Drifted, match="retention has removed offsets 0 to 5 of partition 0"):
        control.run(plan.run_id)
    (blocking,) = (each for each in control.plan(request).findings if each.severity == "block")
    assert blocking.code == "log.partial"
    assert "0=0..5" in blocking.reason
    assert not orders.rows()


def test_retention_that_passes_between_two_chunks_ends_the_run(
    new_orders: Callable[..., Orders], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a run is staged by then; nothing of it is ever seen, and who tries again is told why."""
    monkeypatch.setattr("backcast.sources.kafka.input._RECORDS_A_CHUNK", 12)
    orders = new_orders(partitions=1)
    orders.configure(pipeline=f"chunks_per_job: 1\n{APPEND}")
    orders.send(spread(1, 24), partition=0)
    control = orders.open()
    plan = control.plan(EVERYTHING)
    assert [chunk.id for chunk in plan.manifest.chunks] == ["slice-1", "slice-2"]
    with (
        at_point("chunk.after-record", lambda: orders.broker.delete_records(orders.topic, {0: 18})) as reached,
        pytest.raises(ChunkFailed, match=r"1 of 2 chunks failed; first slice-2: .*out of range"),
    ):
        control.run(plan.run_id)
    assert "chunk.after-record" in reached
    with pytest.raises(Drifted, match="retention has removed offsets 12 to 18 of partition 0"):
        control.retry(plan.run_id)
    assert not orders.rows()


def test_headers_and_positions_reach_the_transform(new_orders: Callable[..., Orders]) -> None:
    orders = new_orders(partitions=1)
    orders.configure(pipeline=APPEND)
    (orders.root / "models" / "orders.sql").write_text(
        "SELECT _kafka.offset AS id,"
        " CAST(get(filter(_kafka.headers, each -> each.key = 'shop'), 0).value AS STRING) AS shop,"
        " _kafka.timestamp AS at, amount, to_date(_kafka.timestamp) AS day FROM orders\n"
    )
    stamp = int(FIRST.timestamp() * 1000)
    headers = ((("shop", b"S7"), ("trace", b"1")), (("trace", None),), ())
    sent = [Record('{"amount": 2.5}', None, stamp, 0, each) for each in headers]
    orders.broker.produce(orders.topic, sent)
    orders.open().backfill(EVERYTHING)
    found = orders.spark.sql(f"SELECT id, shop, at, CAST(day AS STRING) FROM {orders.table} ORDER BY id").collect()
    assert [(row["id"], row["shop"], row["day"]) for row in found] == [
        (0, "S7", "2026-01-01"),
        (1, None, "2026-01-01"),
        (2, None, "2026-01-01"),
    ]
