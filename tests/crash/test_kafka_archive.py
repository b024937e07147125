"""An archive that is filled by processes which die: every record is in it once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from backcast.control import ControlPlane
from backcast.project.config import load_project
from backcast.testing.faults import SimulatedCrash, crash_at
from backcast.testing.orders import Orders, spread
from tests.crash.life import DoomedWiring

DEATHS = (
    "plan.after-record",
    "chunk.after-commit",
    "run.before-staged",
    "publish.before-commit",
    "publish.after-commit",
)


def test_the_next_round_finishes_what_the_last_one_left_and_copies_nothing_twice(
    new_orders: Callable[..., Orders], namespace: str
) -> None:
    """Each round dies later than the one before it, and records arrive in between."""
    orders = new_orders()
    table = f"{namespace}.archive"
    orders.configure(source=f"archive: {{table: {table}}}")
    orders.send(list(spread(1, 8)), partition=0)
    for point in DEATHS:
        control = ControlPlane(DoomedWiring(load_project(orders.root)))
        with crash_at(point), pytest.raises(SimulatedCrash, match=point):
            control.archive("orders")
        orders.send(list(spread(1, 1)), partition=0)
    last = orders.open().archive("orders")
    assert len(last.runs) == 2
    found = Counter(row["offset"] for row in orders.spark.table(table).select("offset").collect())
    assert found == Counter(range(8 + len(DEATHS)))
    assert orders.open().archive("orders").runs == ()
