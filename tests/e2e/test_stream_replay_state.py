"""Kinds of state that only a stream has, computed anew: an outer join of two streams, and state of one's own whose rows
a timeout gives out. What plain Python makes of the same orders is what comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.errors import PlanRefused
from backcast.model.states import RunState
from backcast.model.watermark import WatermarkStrategy as Strategy
from backcast.testing.orders import Order
from tests.e2e.test_stream_replay import Shop
from tests.spark.checkpoint_kit import STORES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.testing.kafka import KafkaBroker

_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_TEN_MINUTES = 60
"""Of them the topic has so many: ten hours."""
Rows = dict[int, tuple[int, float]]
"""By minutes since the first order: how many orders, and their amount."""

_PAID_OR_NOT = """\
from pyspark.sql import functions as F

def hourly(inputs, ctx):
    orders = inputs["orders"]
    placed, paid = orders.where("shop = 'placed'").alias("a"), orders.where("shop = 'paid'").alias("b")
    soon = F.expr("a.id = b.id AND b.at BETWEEN a.at AND a.at + INTERVAL 1 HOUR")
    both = placed.join(paid, soon, "left")
    amount = "CAST(coalesce(b.amount, 0) * {factor} AS DECIMAL(20,2)) AS amount"
    return both.selectExpr("a.at AS start", "CAST(b.id IS NOT NULL AS BIGINT) AS orders", amount)
"""
_VISITS = """\
import pandas as pd

def hourly(inputs, ctx):
    def visits(key, frames, state):
        if state.hasTimedOut:
            start, _, orders = state.get
            state.remove()
            yield pd.DataFrame({{"start": [start], "orders": [orders]}})
            return
        start, last, orders = state.get if state.exists else (None, None, 0)
        over = []
        for at in sorted(at for frame in frames for at in frame["seconds"]):
            if orders and at - last > 1800:
                over.append((start, orders))
                orders = 0
            start, last, orders = (start if orders else at), at, orders + 1
        state.update((start, last, orders))
        state.setTimeoutTimestamp((last + 1800) * 1000)
        yield pd.DataFrame(over, columns=["start", "orders"])

    orders = inputs["orders"].selectExpr("shop", "at", "unix_seconds(at) AS seconds")
    told = "start BIGINT, orders BIGINT"
    kept = "start BIGINT, last BIGINT, orders BIGINT"
    rows = orders.groupBy("shop").applyInPandasWithState(visits, told, kept, "append", "EventTimeTimeout")
    amount = "CAST(orders * {factor} AS DECIMAL(20,2)) AS amount"
    return rows.selectExpr("timestamp_seconds(start) AS start", "orders", amount)
"""


def _paid_or_not() -> tuple[list[Order], Rows]:
    """An order every ten minutes; two of three are paid, twenty minutes later."""
    placed = [Order(each, _FIRST + timedelta(minutes=10 * each), shop="placed") for each in range(_TEN_MINUTES)]
    paid = [Order(each.id, each.at + timedelta(minutes=20), shop="paid") for each in placed if each.id % 3]
    return sorted((*placed, *paid), key=lambda each: each.at), {
        10 * each.id: (1, 1.0) if each.id % 3 else (0, 0.0) for each in placed
    }


def _visits() -> tuple[list[Order], Rows]:
    """Two customers order four times in half an hour, and stay away for forty minutes. A visit goes over each edge."""
    orders: list[Order] = []
    visits: Rows = {}
    for number in range(_TEN_MINUTES):
        for customer in (0, 1):
            at = number - 4 * customer
            if at >= 0 and at % 7 < 4:
                orders.append(Order(customer, _FIRST + timedelta(minutes=10 * number), shop=str(customer)))
                start = 10 * (number - at % 7)
                visits[start] = (at % 7 + 1, at % 7 + 1.0)
    return orders, visits


def _within(rows: Rows, first: int, last: int) -> Rows:
    """Of these hours."""
    return {minute: row for minute, row in rows.items() if first * 60 <= minute < last * 60}


@dataclass(frozen=True)
class _Kind:
    """A transform, what it is given, and why a plan says that no batch will do."""

    transform: str
    made: Callable[[], tuple[list[Order], Rows]]
    because: str
    after: str
    """The pipeline's warm-up behind the window."""


_KINDS = {
    "join": _Kind(_PAID_OR_NOT, _paid_or_not, "a LeftOuter join of two streams finds out by the watermark that", "30m"),
    "own state": _Kind(_VISITS, _visits, "applyInPandasWithState sees rows in the order of batches", "30m"),
}


class Replayed(Shop):
    """Ten hours of one kind, and the rows that the live stream gave out."""

    def begin(self, kind: _Kind, store: str) -> Rows:
        self.write(kind, "1")
        orders, expected = kind.made()
        self.broker.produce(self.topic, [each.record(each.id % 2) for each in orders])
        with _settings(self.spark, STORES[store]):
            self.stream()
        live = self.rows()
        assert _within(live, 0, 8) == _within(expected, 0, 8)
        return live

    def read_on(self, after: str) -> None:
        """Behind a window, as far as what belongs to it may lie."""
        config = self.root / "backcast.yaml"
        config.write_text(
            config.read_text().replace("output: hourly\n", f"output: hourly\n    warm_up: {{after: {after}}}\n")
        )

    def write(self, kind: _Kind, factor: str) -> None:
        (self.root / "pipelines" / "hourly.py").write_text(kind.transform.format(factor=factor))

    def rows(self) -> Rows:
        minute = f"CAST((unix_seconds(start) - {int(_FIRST.timestamp())}) / 60 AS INT)"
        found = self.spark.sql(f"SELECT {minute}, orders, CAST(amount AS DOUBLE) FROM {self.table}").collect()
        rows = {row[0]: (row[1], row[2]) for row in found}
        assert len(rows) == len(found), "a row is there twice"
        return dict(sorted(rows.items()))


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Of the live query alone: a replay finds them in its checkpoint."""
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield
    for key in settings:
        spark.conf.unset(key)


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession, broker: KafkaBroker, namespace: str, lake_root: Path) -> Replayed:
    return Replayed(tmp_path, spark, broker, f"{namespace}.hourly", lake_root)


@pytest.mark.parametrize(
    ("kind", "store", "strategy"),
    [
        ("join", "rocksdb", Strategy.BOUNDED),
        ("own state", "hdfs", Strategy.SORTED),
    ],
)
def test_state_that_no_batch_has_is_replayed_to_the_rows_that_plain_python_expects(
    shop: Replayed, kind: str, store: str, strategy: Strategy
) -> None:
    """From the state before the window, beyond its end, and out of what the end of time closes."""
    logic = _KINDS[kind]
    live = shop.begin(logic, store)
    shop.write(logic, "10")
    short = shop.control().plan(shop.request(watermark=strategy), record=False)
    assert "replay.cut-end" in {each.code for each in short.findings}
    shop.read_on(logic.after)
    control = shop.control()
    with pytest.raises(PlanRefused, match=f"a batch would give other rows than stream live: {logic.because}"):
        control.plan(shop.request(watermark=Strategy.BATCH), record=False)
    plan = control.plan(shop.request(watermark=strategy))
    assert not plan.refused, plan.findings
    told = {each.code: each.reason for each in plan.findings}
    assert "replay.cut-end" not in told
    assert told["replay.as-stream"].startswith(f"computed by a streaming query of its own: {logic.because}")
    replay = plan.manifest.replay
    assert replay is not None
    assert replay.batch is not None, "it starts with the state of the stream"
    run = control.run(plan.run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    control.publish(plan.run_id)
    mended = {minute: (orders, 10 * amount) for minute, (orders, amount) in _within(live, 4, 8).items()}
    assert shop.rows() == {**live, **mended}
