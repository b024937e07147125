"""What a dataset lacks, found in its rows, in its positions and against its sources; and the plan for exactly that."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from backcast.errors import InvalidRequest
from backcast.model.gaps import Fate
from backcast.model.pipeline import TableFormat
from backcast.model.request import Request
from backcast.testing.orders import Orders, spread
from backcast.testing.shop import Shop
from tests.e2e.test_canary import changed
from tests.e2e.test_publish import ON_BOTH

WHY = Request(pipeline="", reason="the loader was down", requested_by="tests")


@ON_BOTH
def test_missing_days_are_planned_in_one_step_and_are_no_gap_after_the_publish(shop: Shop) -> None:
    control = shop.open()
    assert control.gaps("revenue").sound
    shop.spark.sql(f"DELETE FROM {shop.revenue} WHERE day IN ('2026-01-04', '2026-01-05', '2026-01-08')")
    shop.spark.sql(f"DELETE FROM {shop.revenue} WHERE day = '2026-01-02' AND shop = 'S1'")
    shop.spark.sql(f"DELETE FROM {shop.revenue} WHERE day >= '2026-01-10'")
    found = control.gaps("revenue", why=WHY, plan=True)
    assert [(f"{each.window.start:%m-%d}", each.pieces) for each in found.gaps] == [("01-04", 2), ("01-08", 1)]
    (request,) = found.requests
    assert [f"{each:%m-%d}" for each in request.dates] == ["01-04", "01-05", "01-08"]
    assert request.reason == "3 days without rows of revenue: the loader was down"
    (fix,) = found.plans
    assert (fix.recorded, fix.chunks, fix.problem) == (True, 3, "")
    control.run(fix.run_id)
    control.publish(fix.run_id)
    found = control.gaps("revenue")
    assert found.sound
    assert found.rows == 17

    found = control.gaps("revenue", against="revenue")
    assert found.against is not None
    assert [(f"{each.window.start:%m-%d}", each.rows, each.expected) for each in found.against.differing] == [
        ("01-02", 1, 2)
    ]
    assert [f"{each.window.start:%m-%d}" for each in found.gaps] == ["01-10"], "the source says that a day is missing"
    (request,) = found.requests
    assert [f"{each:%m-%d}" for each in request.dates] == ["01-02", "01-10"]
    with pytest.raises(InvalidRequest, match="pipeline 'sales' does not fill revenue"):
        control.gaps("revenue", against="sales")


def test_closed_days_and_weekends_are_no_gaps_and_neither_is_the_future(shop: Shop) -> None:
    """3 and 4 January 2026 are a weekend, 10 January is a Saturday."""
    days = "'2026-01-03', '2026-01-04', '2026-01-06', '2026-01-07'"
    shop.spark.sql(f"DELETE FROM {shop.revenue} WHERE day IN ({days})")
    changed(shop, "    key: [day, shop]\n", "    key: [day, shop]\n    closed: [2026-01-06]\n")
    found = shop.open().gaps("revenue", calendar="weekdays")
    assert [f"{each.window.start:%m-%d}" for each in found.gaps] == ["01-07"]
    assert found.closed == 3
    assert [gap.pieces for gap in shop.open().check("revenue").gaps] == [2, 1], "check goes by the same calendar"
    ahead = shop.open().gaps("revenue", start="2026-01-08", end="2099-01-01")
    assert ahead.window is not None
    assert ahead.window.end.year < 2099


def test_hours_are_missing_where_most_days_have_them_and_are_planned_alone(shop: Shop) -> None:
    """Sales of a day lie in its first hour; here those of four days are spread over three hours. They are copied."""
    for hour in (1, 2):
        shop.spark.sql(
            f"INSERT INTO {shop.sales} SELECT id, shop, sold_at + INTERVAL {hour} HOUR, amount, quantity "
            f"FROM {shop.sales} WHERE hour(sold_at) = 0"
        )
    copied = f"{shop.namespace}.copied"
    shop.spark.sql(f"CREATE TABLE {copied} USING iceberg PARTITIONED BY (days(sold_at)) AS SELECT * FROM {shop.sales}")
    copy = f"  copied: {{table: {copied}, time: {{column: sold_at, kind: timestamp}}, grain: day}}\n  revenue:\n"
    changed(shop, "  revenue:\n    table", f"{copy}    table")
    changed(
        shop,
        "pipelines:\n",
        "pipelines:\n  copy: {sql: copy.sql, version: 1.0.0, inputs: {sales: sales}, output: copied}\n",
    )
    (shop.root / "copy.sql").write_text("SELECT * FROM sales")
    shop.spark.sql(f"DELETE FROM {copied} WHERE date_trunc('HOUR', sold_at) = TIMESTAMP'2026-01-05 01:00:00Z'")
    control = shop.open()
    found = control.gaps("copied", why=WHY, plan=True)
    assert found.gaps == ()
    assert [(f"{each.window.start:%m-%d %H}", each.pieces) for each in found.hours] == [("01-05 01", 1)]
    assert [(each.start, each.end) for each in found.requests] == [("2026-01-05T01:00Z", "2026-01-05T02:00Z")]
    (fix,) = found.plans
    assert (fix.recorded, fix.problem) == (True, "")
    control.run(fix.run_id)
    control.publish(fix.run_id)
    assert control.gaps("copied").sound
    rows, others = shop.spark.table(copied), shop.spark.table(shop.sales)
    assert (rows.exceptAll(others).count(), others.exceptAll(rows).count()) == (0, 0)
    assert control.gaps("sales").pipeline is None, "nothing that could be planned fills it"


@pytest.mark.parametrize("table_format", list(TableFormat))
def test_offsets_that_no_row_carries_are_planned_exactly(
    new_orders: Callable[..., Orders], table_format: TableFormat
) -> None:
    """Of one partition the first record, three others and all behind the last run were never appended, of the other
    nothing; a transaction's marker is no gap.
    """
    orders = new_orders(partitions=2, table_format=table_format)
    orders.configure(source="transactional: true", pipeline="publish: {mode: append}")
    config = orders.root / "backcast.yaml"
    config.write_text(config.read_text().replace("    key: [id]\n", "    position: {partition: shop, offset: id}\n"))
    (orders.root / "models" / "orders.sql").write_text(
        "SELECT _kafka.offset AS id, CAST(_kafka.partition AS STRING) AS shop, at, amount, to_date(at) AS day\n"
        "FROM orders\n"
    )
    sent = list(spread(2, 10))
    orders.broker.transaction(orders.topic, [each.record(0) for each in sent[:10]])
    orders.broker.transaction(orders.topic, [each.record(0) for each in sent[10:]])
    orders.broker.produce(orders.topic, [sent[number].record(1) for number in (0, 10, 1, 11, 2)])
    control = orders.open()
    control.backfill(Request(pipeline="orders", offsets="0=1..3,0=5..14,0=15..20", requested_by="tests"))
    found = control.gaps("orders_by_day")
    assert [(*each.range.model_dump().values(), each.fate) for each in found.holes] == [
        (0, 0, 1, Fate.THERE),
        (0, 3, 5, Fate.THERE),
        (0, 10, 11, Fate.EMPTY),
        (0, 14, 15, Fate.THERE),
        (1, 0, 5, Fate.THERE),
    ]
    assert [tuple(each.model_dump().values()) for each in found.pending] == [(0, 20, 22)]
    found = control.gaps("orders_by_day", why=WHY, plan=True)
    assert [each.offsets for each in found.requests] == ["0=0..1,0=3..5,0=14..15,1=0..5"]
    (fix,) = found.plans
    assert fix.recorded
    control.run(fix.run_id)
    control.publish(fix.run_id)
    found = control.gaps("orders_by_day")
    assert (found.sound, found.between_rows, orders.rows().total()) == (True, "", 24)
    found = control.gaps("orders_by_day", start="2026-01-01", end="2026-01-02")
    assert (found.sound, found.holes) == (True, ()), "offsets between two rows of a day may be in rows of another"
    assert "other times" in found.between_rows
    orders.broker.delete_records(orders.topic, {1: 3})
    orders.spark.sql(f"DELETE FROM {orders.table} WHERE shop = '1'")
    found = control.gaps("orders_by_day")
    assert [(*each.range.model_dump().values(), each.fate) for each in found.lacking] == [
        (1, 0, 3, Fate.GONE),
        (1, 3, 5, Fate.THERE),
    ]
