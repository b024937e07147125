"""A table that somebody dropped: its runs can be given up, and it stops nobody else's cleaning."""

from __future__ import annotations

from pathlib import Path

from backcast.model.states import RunState
from backcast.testing.shop import Shop
from tests.e2e.test_publish import accepted


def test_a_run_of_a_dropped_table_can_be_cancelled(shop: Shop) -> None:
    control, run_id = accepted(shop)
    shop.spark.sql(f"DROP TABLE {shop.revenue}")
    assert control.cancel(run_id).state is RunState.CANCELLED
    assert control.list(open_only=True) == []


def test_gc_keeps_the_runs_of_a_dropped_table_and_goes_on(shop: Shop, lake_root: Path) -> None:
    shop.configure(lake_root, undo_window="0s")
    control, run_id = accepted(shop)
    control.publish(run_id)
    shop.spark.sql(f"DROP TABLE {shop.revenue}")
    report = control.gc()
    assert report.items == ()
    (kept,) = report.kept
    assert run_id in kept
    assert shop.revenue.rpartition(".")[2] in kept
