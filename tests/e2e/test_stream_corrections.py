"""Corrections by records: what is sent into the topic of a stream that merges mends its table, without any run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

import pytest

from backcast.model.pipeline import TableFormat
from backcast.testing.kafka_records import Record
from backcast.testing.orders import FIRST, Order, Orders
from tests.e2e.test_kafka_merge import MODEL


@pytest.mark.parametrize("table_format", TableFormat)
def test_records_sent_to_a_stream_replace_take_back_and_add_again_and_an_old_one_changes_nothing(
    new_orders: Callable[..., Orders], table_format: TableFormat
) -> None:
    orders = new_orders(partitions=1, table_format=table_format)
    orders.configure(source="tombstones: rows", stream="write: merge", pipeline="publish: {mode: merge, deletes: gone}")
    (orders.root / "models" / "orders.sql").write_text(MODEL)
    hour, day = timedelta(hours=1), "2026-01-01"
    wrong = [Order(number, FIRST + 5 * hour, "9.00") for number in (1, 2, 3, 4)]
    _take(orders, *(each.record(0) for each in wrong))
    assert orders.rows() == Counter((each.id, day, "9.00") for each in wrong)
    mended, again, old = Order(1, FIRST + 6 * hour, "1.00"), Order(3, FIRST + 7 * hour, "3.00"), Order(4, FIRST, "4.00")
    gone = [Record(None, key=key, timestamp=mended.record().timestamp, partition=0) for key in ("2", "3")]
    _take(orders, mended.record(0), *gone, again.record(0), old.record(0))
    mended_rows = Counter([(1, day, "1.00"), (3, day, "3.00"), (4, day, "9.00")])
    assert orders.rows() == mended_rows
    _take(orders, Order(2, FIRST, "2.00").record(0))
    assert orders.rows() == mended_rows + Counter([(2, day, "2.00")]), "nothing is kept of a row that was taken away"


def _take(orders: Orders, *records: Record) -> None:
    """Into the topic, and from there into the table."""
    orders.broker.produce(orders.topic, list(records))
    control = orders.open()
    with closing(control.world):
        control.stream_start("live", once=True)
