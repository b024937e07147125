"""SIGKILL of a live stream, of Python, of the JVM, of both: every record is in the table once. More: stream_soak."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from backcast.model.pipeline import TableFormat
from backcast.testing.orders import Orders
from tests.crash.stream_life import StreamLife

FAULTS = {
    TableFormat.ICEBERG: ("stream.after-commit:python", "both"),
    TableFormat.DELTA: ("stream.before-commit:both", "jvm"),
}


@pytest.mark.parametrize("table_format", list(TableFormat))
def test_a_stream_that_is_killed_writes_every_record_once_and_stops_on_a_signal(
    new_orders: Callable[..., Orders], table_format: TableFormat
) -> None:
    """What stops it is a process's affair and no format's: the last of them on Delta is this one."""
    orders = new_orders(table_format=table_format)
    orders.configure(stream="most_per_trigger: 20")
    life = StreamLife(orders)
    point, kill = FAULTS[table_format]
    try:
        life.send(30)
        life.die_at(point)
        life.die_at_random(random.Random(7), kill, 2.0)  # noqa: S311 - a kill, not a secret
        life.send(30)
        ended = life.stop_by_signal() if table_format is TableFormat.ICEBERG else life.catch_up()
        assert (ended.state, ended.alive) == ("stopped", False)
        assert ended.batches[0].landed
        life.check()
    finally:
        life.close()
