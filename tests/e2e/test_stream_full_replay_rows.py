"""A full replay of a stream without state, from a day on: old rows before it, replayed ones from it on, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest

from backcast.control import ControlPlane
from backcast.errors import InvalidRequest, Refused
from backcast.model.pipeline import TableFormat
from backcast.model.request import Request
from backcast.project.clock import SystemClock
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.testing.faults import at_point
from backcast.testing.orders import FIRST, Order, Orders, spread
from tests.e2e.test_stream import Died, die
from tests.e2e.test_stream import caught_up as live
from tests.e2e.test_stream_full_replay import caught_up, publish

WHY = Request(pipeline="orders", reason="amounts were net")
SENT = list(spread(3, 10))
_TIMES = "SELECT id, shop, at, CAST(amount * times AS DECIMAL(10,2)) AS amount, to_date(at) AS day"
_BESIDE = "FROM orders CROSS JOIN rates WHERE id % 2"
TEN_TIMES = f"{_TIMES} {_BESIDE} = 0 UNION ALL {_TIMES} {_BESIDE} <> 0\n"
"""By a table beside the topic, which is read twice."""


class Hurried(SystemClock):
    """Who sleeps is awake at once, and later."""

    slept = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.slept

    def sleep(self, seconds: float) -> None:
        self.slept += seconds


def _late(number: int) -> Order:
    """An order of the first day whose record comes after those of the third."""
    return Order(number, FIRST + timedelta(hours=number % 24), "2.00", late=timedelta(days=3))


def _rows(old: list[Order], new: list[Order]) -> Counter[tuple[int, str, str]]:
    tenfold = [(each.id, f"{each.at:%Y-%m-%d}", f"{float(each.amount) * 10:.2f}") for each in new]
    return Counter([*((each.id, f"{each.at:%Y-%m-%d}", each.amount) for each in old), *tenfold])


@pytest.mark.parametrize("table_format", list(TableFormat))
def test_outputs_are_merged_at_a_day(
    new_orders: Callable[..., Orders], namespace: str, table_format: TableFormat
) -> None:
    """With a record that nobody can decode, and a batch that died behind its commit: the store does not know it."""
    orders = new_orders(table_format=table_format)
    aside = f"{namespace}.aside_{table_format.value}"
    throttle = "throttle: {pause: 1m, live_lag: 5}"
    orders.configure(source=f"quarantine: {{table: {aside}, most: 1}}", pipeline=throttle, stream="most_per_trigger: 8")
    orders.send(SENT)
    orders.send_raw(b"{broken")
    live(orders)
    orders.send([_late(100)])
    with at_point("stream.after-commit", die), pytest.raises(Died):
        live(orders)
    orders.send([_late(101)])
    rates = _deploy(orders, namespace)
    said, clock = set[str](), Hurried()
    control = ControlPlane(Wiring(load_project(orders.root), clock))
    control.stream_replay("live", "2026-01-02")
    control.stream_replay_slice("live", within=1000, on_progress=lambda progress: said.add(progress.message))
    assert {each.partition(" ")[0] for each in said} == {"rests"}, "nobody runs the stream, and so nobody waits for it"
    assert clock.slept > 60, "behind each of its batches"
    file = orders.root / "backcast.yaml"
    file.write_text(file.read_text().replace(f"    {throttle}\n", ""))
    control = orders.open()
    at_first = control.world.source("rates").facts().version
    orders.spark.sql(f"INSERT OVERWRITE {rates} VALUES (1000)")
    found = caught_up(control)
    assert sum(found.ends.values()) == len(SENT) + 2, "what the table has is read, whatever the store knows"
    run_id = publish(control, WHY)
    pins = control.world.store().runs.manifest(run_id).inputs
    assert {each.name: each.version for each in pins if each.log is None} == {"rates": at_first}, "what was read"
    orders.spark.sql(f"INSERT OVERWRITE {rates} VALUES (10)")
    control.stream_replay_swap("live")
    control.stream_replay_end("live")
    first_day = [each for each in SENT if each.at.day == 1]
    others = [each for each in SENT if each.at.day > 1]
    assert orders.rows() == _rows([*first_day, _late(100)], others)
    live(orders)
    assert orders.rows() == _rows([*first_day, _late(100)], [*others, _late(101)]), "late ones too, once"
    kept = orders.spark.sql(f"SELECT run_id FROM {aside} ORDER BY run_id").collect()
    assert [row[0] for row in kept] == sorted([run_id, "stream:live"])


def _deploy(orders: Orders, namespace: str) -> str:
    """The correction, and the table beside the topic that it reads."""
    rates, config = f"{namespace}.rates_{orders.format.value}", orders.root / "backcast.yaml"
    orders.spark.sql(f"CREATE TABLE {rates} USING iceberg AS SELECT 10 AS times")
    (orders.root / "models" / "orders.sql").write_text(TEN_TIMES)
    text = config.read_text().replace("datasets:\n", f"datasets:\n  rates: {{table: {rates}}}\n")
    config.write_text(
        text.replace("inputs: {orders: orders}", "inputs: {orders: orders, rates: {dataset: rates, window: all}}")
    )
    return rates


def test_rows_that_the_topic_does_not_account_for_are_not_replaced(new_orders: Callable[..., Orders]) -> None:
    """History that came from elsewhere; and what would only be refused once all is computed is refused at once."""
    orders = new_orders()
    orders.send(SENT)
    live(orders)
    history = "(-1L, 'S1', TIMESTAMP'2025-12-01 00:00:00Z', CAST(1 AS DECIMAL(10,2)), DATE'2025-12-01')"
    orders.spark.sql(f"INSERT INTO {orders.table} VALUES {history}")
    control = orders.open()
    control.stream_replay("live")
    with pytest.raises(Refused, match="older ones would be replaced by nothing") as told:
        control.stream_replay_slice("live")
    assert "--from 2026-01-01 keeps what lies before" in told.value.hint
    control.stream_replay_end("live", given_up=True)
    for stream in ("write: merge", "checkpoint: s3://bucket/checkpoint", "external: true"):
        orders.configure(stream=stream)
        text = (orders.root / "backcast.yaml").read_text()
        if stream.startswith("checkpoint"):
            (orders.root / "backcast.yaml").write_text(text.replace("    checkpoint: .checkpoints/live\n", ""))
        with pytest.raises(InvalidRequest):
            orders.open().stream_replay("live")
