"""What counts against a budget: every second of every job, also of those that came to nothing."""

from __future__ import annotations

from pathlib import Path

from backcast.model.need import Budget, Prices
from backcast.run.spending import seconds_spent
from backcast.store import open_store
from backcast.testing.lives import staged_run


def test_seconds_of_jobs_that_failed_or_were_stopped_count(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        run = staged_run(store)
        records = store.runs.stage_records(run.run_id)
        assert seconds_spent(records, store.runs.events(run.run_id)) == 4.5
        store.runs.record(run.run_id, "chunks.failed", chunks=["2025-01-01"], error="of an earlier release")
        for seconds in (30.25, 10.25):
            store.runs.record(run.run_id, "chunks.failed", chunks=["2025-01-01"], error="it raised", seconds=seconds)
        assert seconds_spent(records, store.runs.events(run.run_id)) == 45.0


def test_time_is_limited_by_a_duration_or_by_a_cost_that_can_be_told() -> None:
    prices = Prices(currency="EUR", per_executor_hour=(1, 1))
    assert Budget(seconds=60).limits_time
    assert Budget(cost=5.0, prices=prices).limits_time
    assert not Budget(cost=5.0).limits_time
    assert not Budget(rows=7).limits_time
