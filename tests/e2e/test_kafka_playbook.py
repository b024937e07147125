"""What the playbook of an on-call engineer asks for, typed as commands: real processes, a real broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from backcast.testing.orders import FIRST, Order, Orders, rows_of, spread
from tests.cheap import cheap

LAST = Order(9_999, FIRST + timedelta(days=31) - timedelta(milliseconds=1), "9.99")
MONTH = [*spread(31, 6), LAST]
RAW = """\
  raw: {{table: {table}_raw, time: {{column: day, kind: date}}}}
pipelines:
  raw: {{sql: models/orders.sql, version: 1.0.0, inputs: {{orders: orders}}, output: raw, publish: {{mode: append}}}}
"""


@pytest.fixture
def orders(new_orders: Callable[..., Orders]) -> Orders:
    """A month of orders in the topic; a table by day, and one that everything is appended to."""
    made = new_orders()
    file = made.root / "backcast.yaml"
    file.write_text(file.read_text().replace("pipelines:\n", RAW.format(table=made.table)))
    made.create_table("_raw")
    made.send(MONTH)
    return made


def backfill(orders: Orders, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "backcast", "backfill", *arguments, "--yes", "--json"]
    done = subprocess.run(
        [*command, "--project", str(orders.root)],
        capture_output=True,
        text=True,
        # Whatever the clock of a machine shows, a day is a day of UTC unless the project says otherwise.
        env={**os.environ, **cheap(topics=True), "TZ": "America/New_York"},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def raw(orders: Orders) -> Counter[int]:
    return Counter(row["id"] for row in orders.spark.table(f"{orders.table}_raw").collect())


def test_a_month_in_day_chunks_then_the_next_day(orders: Orders) -> None:
    """Every order of the month, also that of its last millisecond, and nothing twice when the day after comes."""
    backfill(orders, "orders", "--from", "2026-01-01", "--to", "2026-02-01", "--reason", "a month in day chunks")
    assert orders.rows() == rows_of(MONTH, "2026-01-01", "2026-02-01")
    today = [Order(20_000 + number, FIRST + timedelta(days=31, hours=number)) for number in range(5)]
    orders.send(today)
    backfill(orders, "orders", "--on", "2026-02-01", "--reason", "daily catch-up")
    assert orders.rows() == rows_of([*MONTH, *today], "2026-01-01", "2026-02-02")


def test_offsets_then_a_day_by_record_time_then_the_beginning(orders: Orders) -> None:
    backfill(orders, "raw", "--offsets", "0=0..5,1=2..4", "--reason", "a gap")
    assert raw(orders).total() == 7
    backfill(orders, "raw", "--record-time", "2026-01-31..2026-02-01", "--reason", "the last day")
    day = [each for each in MONTH if f"{each.at:%d}" == "31"]
    assert raw(orders).total() == 7 + len(day)
    assert raw(orders)[LAST.id] == 1, "the last second of a day is part of it"
    before = raw(orders)
    backfill(orders, "raw", "--offsets", "earliest", "--reason", "from the beginning")
    assert raw(orders) == before + Counter(each.id for each in MONTH)
