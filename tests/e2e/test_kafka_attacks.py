"""Ways to lose or double records that are refused, however they come about."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from textwrap import dedent

import pytest

from backcast.control import ControlPlane
from backcast.errors import ChunkFailed, LeaseHeld, Refused
from backcast.model.request import Kind, Request
from backcast.model.states import RunState
from backcast.project.clock import SystemClock
from backcast.project.config import load_project
from backcast.testing.faults import at_point
from backcast.testing.orders import Order, Orders, rows_of, spread
from tests.crash.life import DoomedWiring

NewOrders = Callable[..., Orders]
APPEND = "publish: {mode: append}"
SENT = list(spread(1, 40))


class ClockThatJumps(SystemClock):
    """As a process sees it that stood still."""

    jumped = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.jumped


def asked(offsets: str) -> Request:
    return Request(pipeline="orders", offsets=offsets, requested_by="tests")


def codes(control: ControlPlane, request: Request) -> dict[str, str]:
    return {each.code: each.severity for each in control.plan(request, record=False).findings}


def appending(new_orders: NewOrders, more: str = "") -> Orders:
    orders = new_orders(partitions=1)
    orders.configure(source=more, pipeline=APPEND)
    orders.send(SENT, partition=0)
    return orders


def accepted(control: ControlPlane, request: Request) -> str:
    run = control.run(control.plan(request).run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    return run.run_id


def test_an_overlap_that_the_plan_could_not_tell_is_refused_by_publish(new_orders: NewOrders) -> None:
    """Planned side by side; or under another name of the dataset, which the next plan sees. And whoever stands still
    between looking and committing while the other publishes finds its turn taken.
    """
    orders = appending(new_orders)
    control, clock = orders.open(), ClockThatJumps()
    first, second = accepted(control, asked("0=0..25")), accepted(control, asked("0=10..40"))

    def while_it_stands_still() -> None:
        control.publish(first)
        clock.jumped = 60.0

    asleep = ControlPlane(DoomedWiring(load_project(orders.root), clock))
    with at_point("publish.before-intent", while_it_stands_still), pytest.raises(LeaseHeld, match="append:"):
        asleep.publish(second)
    with pytest.raises(Refused, match="has appended 15 offsets of these already, since this one was planned"):
        control.publish(second)
    assert orders.rows() == rows_of(SENT[:25], "2026-01-01", "2026-02-01")
    file = orders.root / "backcast.yaml"
    file.write_text(file.read_text().replace("orders_by_day", "daily_orders"))
    assert codes(orders.open(), asked("0=10..40"))["append.overlap"] == "warn"


def test_a_bootstrap_is_not_published_into_a_table_that_got_rows_since(new_orders: NewOrders) -> None:
    orders = appending(new_orders)
    control = orders.open()
    run_id = accepted(control, Request(pipeline="orders", kind=Kind.BOOTSTRAP, requested_by="tests"))
    orders.spark.sql(f"INSERT INTO {orders.table} VALUES (1, 'S', current_timestamp(), 1.00, DATE'2026-01-01')")
    with pytest.raises(Refused, match="has 1 row already"):
        control.publish(run_id)


def test_a_young_log_that_was_cut_is_told(new_orders: NewOrders) -> None:
    """By its size: refused. By somebody who deleted records: a warning, for the topic may just have been idle."""
    orders = new_orders(partitions=1, retention_ms=str(7 * 86_400_000))
    yesterday = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    orders.send([Order(number, yesterday + timedelta(minutes=number)) for number in range(20)], partition=0)
    orders.broker.delete_records(orders.topic, {0: 10})
    request = orders.request(f"{yesterday:%Y-%m-%d}", f"{yesterday + timedelta(days=1):%Y-%m-%d}")
    assert codes(orders.open(), request)["log.may-be-cut"] == "warn"
    orders.broker.configure(orders.topic, retention_bytes="1000000000")
    assert codes(orders.open(), request)["log.partial"] == "block"


def test_a_transform_reads_no_topic_on_its_own(new_orders: NewOrders) -> None:
    """Neither another one nor the declared one: what it finds there is not pinned."""
    orders = appending(new_orders)
    (orders.root / "pipelines").mkdir()
    (orders.root / "pipelines" / "orders.py").write_text(
        dedent(
            f"""\
            import backcast


            @backcast.transform(name="orders", version="1.0.0")
            def orders(inputs, ctx):
                read = ctx.spark.read.format("kafka").option("kafka.bootstrap.servers", "{orders.broker.servers}")
                more = read.option("subscribe", "{orders.topic}").load().selectExpr("max(offset) AS last")
                return inputs["orders"].crossJoin(more).selectExpr(
                    "id", "shop", "at", "amount + last * 0 AS amount", "to_date(at) AS day"
                )
            """
        )
    )
    file = orders.root / "backcast.yaml"
    file.write_text(file.read_text().replace("sql: models/orders.sql", "transform: pipelines.orders:orders"))
    assert codes(orders.open(), asked("0=0..5"))["input.undeclared"] == "block"


def test_a_record_is_not_lost_by_rejecting_another_one(new_orders: NewOrders) -> None:
    """A position of a topic that is no input; and a record without event time is told apart from those outside."""
    orders = appending(new_orders, "quarantine: {table: lake.aside.orders, most: 10}")
    orders.spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.aside")
    (orders.root / "models" / "orders.sql").write_text(
        "SELECT id, shop, at, amount, to_date(at) AS day, IF(id = 7, 'odd', NULL) AS _rejected,"
        " named_struct('topic', 'elsewhere', 'partition', _kafka.partition, 'offset', _kafka.offset) AS _kafka"
        " FROM orders\n"
    )
    with pytest.raises(ChunkFailed, match="rejects a record of topic 'elsewhere', which is none of its inputs"):
        orders.open().run(orders.open().plan(asked("0=0..20")).run_id)
    assert not orders.rows()
    orders.configure()
    orders.send_raw(b'{"id": 900, "shop": "S1", "at": null, "amount": 1}', at=SENT[-1].at)
    control = orders.open()
    run_id = accepted(control, orders.request("2026-01-01", "2026-01-02"))
    verdict = control.world.reader().verdict(run_id)
    assert verdict is not None
    assert "40 in the window, 1 without event time" in next(
        each.detail for each in verdict.checks if each.name == "offsets covered"
    )


def test_an_archive_is_not_read_under_another_isolation(new_orders: NewOrders) -> None:
    """Aborted records in it would come back as if they had been committed."""
    orders = new_orders(partitions=1)
    place = f"transactional: true\narchive: {{table: {orders.table.replace('.orders', '.archive')}}}"
    orders.configure(source=f"isolation: read_uncommitted\n{place}")
    orders.broker.transaction(orders.topic, [each.record(0) for each in SENT[:5]], commit=False)
    orders.broker.transaction(orders.topic, [each.record(0) for each in SENT[5:10]])
    orders.open().archive("orders", requested_by="tests")
    orders.configure(source=place)
    with pytest.raises(Refused, match="read under read_uncommitted, and source orders is declared as read_committed"):
        orders.open().plan(orders.request("2026-01-01", "2026-01-02"))
