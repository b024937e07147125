"""Estimates with their error band, and the limits that they are held against."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backcast.model.digest import Digest
from backcast.model.finding import Finding, Severity
from backcast.model.manifest import Estimate
from backcast.model.need import Budget, Prices
from backcast.model.policy import Policy
from backcast.model.request import Request
from backcast.model.run import Run, StageRecord, lease_name
from backcast.model.states import RunState
from backcast.plan.estimate import Amounts, Rate, Record, estimate, middle
from backcast.plan.limits import Room, budget_findings, budget_of, room_findings
from backcast.status import recorded_hits
from backcast.store import open_store
from backcast.testing.samples import sample_holder, sample_manifest
from tests.unit.projects import project

FOUND = Amounts(input_rows=3_000_000, input_bytes=9_000, target_rows=1_000, target_bytes=50_000)
RATE = Rate(slow=10, fast=100, jobs=3)
PRICES = Prices(per_million_rows=(500, 1_000), per_executor_hour=(3.6, 36), executors=10, currency="EUR")
GIB = 1024**3


def codes(findings: list[Finding]) -> dict[str, Severity]:
    return {each.code: each.severity for each in findings}


def test_earlier_runs_widen_the_range_and_say_so() -> None:
    plain = estimate(FOUND, RATE)
    assert (plain.rows_low, plain.band, plain.output_bytes) == (None, "", 50_000)
    wide = estimate(FOUND, RATE, Record(rows=(0.5, 3.0), seconds=(0.1, 10.0), runs=4))
    assert (wide.rows_low, wide.output_rows, wide.rows_high) == (500, 1_000, 3_000)
    centre = middle(plain.seconds_low, plain.seconds_high)
    assert (wide.seconds_low, wide.seconds_high) == (int(centre * 0.1), int(centre * 10))
    assert wide.band == "4 finished runs took 0.1 to 10.0 times what was estimated"


@given(st.floats(0.01, 5), st.floats(0.01, 5), st.floats(0.01, 5), st.floats(0.01, 5))
def test_a_range_never_becomes_narrower_than_the_jobs_were(a: float, b: float, c: float, d: float) -> None:
    plain = estimate(FOUND, RATE)
    rows, seconds = sorted((a, b)), sorted((c, d))
    found = estimate(FOUND, RATE, Record((rows[0], rows[1]), (seconds[0], seconds[1]), 1))
    assert found.seconds_low <= plain.seconds_low
    assert found.seconds_high >= plain.seconds_high
    assert (found.rows_low or 0) <= found.output_rows <= (found.rows_high or 0)


def test_the_cost_goes_from_the_low_price_of_little_to_the_high_price_of_much() -> None:
    found = estimate(FOUND, RATE, Record(rows=(0.5, 2.0), seconds=(1.0, 1.0), runs=1), PRICES)
    # 500 rows and 15 s at the low prices; 2,000 rows and 130 s at the high ones; ten executors.
    assert (found.cost_low, found.cost_high, found.currency) == (0.4, 15.0, "EUR")
    assert estimate(FOUND, RATE).cost_low is None


def guess(**changes: object) -> Estimate:
    return Estimate(
        input_rows=10,
        input_bytes=10 * GIB,
        output_rows=100,
        seconds_low=10,
        seconds_high=100,
        basis="",
        output_bytes=2 * GIB,
        rows_low=50,
        rows_high=200,
        cost_low=1.0,
        cost_high=5.0,
        currency="EUR",
    ).model_copy(update=changes)


@pytest.mark.parametrize(
    ("budget", "found"),
    [
        (Budget(rows=200, seconds=100, cost=5), {}),
        (Budget(rows=199), {"budget.rows": Severity.WARN}),
        (Budget(rows=49), {"budget.rows": Severity.BLOCK}),
        (Budget(seconds=99), {"budget.duration": Severity.WARN}),
        (Budget(seconds=9), {"budget.duration": Severity.BLOCK}),
        (Budget(cost=4.99), {"budget.cost": Severity.WARN}),
        (Budget(cost=0.99), {"budget.cost": Severity.BLOCK}),
    ],
)
def test_a_budget_refuses_what_is_certainly_over_it_and_warns_of_what_may_be(
    budget: Budget, found: dict[str, Severity]
) -> None:
    assert codes(budget_findings(budget, guess())) == found


def test_a_limit_of_cost_without_prices_is_no_limit_and_refused() -> None:
    unpriced = guess(cost_low=None, cost_high=None)
    assert codes(budget_findings(Budget(cost=5), unpriced)) == {"budget.no-prices": Severity.BLOCK}
    assert budget_findings(None, unpriced) == []


def test_a_request_can_ask_for_less_than_the_policy_allows_and_not_for_more() -> None:
    policy = Policy(roles={}, budget=Budget(rows=100, cost=5), prices=PRICES)
    less = budget_of(Request(pipeline="p", max_rows=10, max_seconds=60), policy)
    assert less == Budget(rows=10, cost=5, seconds=60, prices=PRICES)
    more = budget_of(Request(pipeline="p", max_rows=1_000), policy)
    assert more is not None
    assert more.rows == 100
    assert budget_of(Request(pipeline="p"), None) is None


@pytest.mark.parametrize(
    ("room", "found"),
    [
        (Room(), {}),
        (Room(disk=3 * GIB, scratch=2 * GIB, memory=GIB), {}),
        (Room(disk=2 * GIB), {"capacity.disk": Severity.BLOCK}),
        (Room(scratch=GIB), {"capacity.scratch": Severity.WARN}),
        (Room(memory=GIB // 10), {"capacity.memory": Severity.NOTE}),
    ],
)
def test_a_plan_says_when_there_is_no_room_for_it(room: Room, found: dict[str, Severity]) -> None:
    assert codes(room_findings(guess(), 5, room)) == found


def test_the_free_space_is_that_of_the_disk_with_the_table(tmp_path: Path) -> None:
    from backcast.project.space import free_space

    disk, scratch = free_space(project(tmp_path), "daily")
    assert disk is not None
    assert disk > 0
    assert scratch is not None
    assert free_space(project(tmp_path), "archive-x")[0] is None


def finished(store_path: Path, rows: int, seconds: float) -> Record | None:
    """A run of one day whose estimate was 900 rows in 1 to 10 seconds."""
    with open_store(f"sqlite:///{store_path}/{rows}.db") as store:
        assert recorded_hits(store.runs, "orders") is None
        run: Run = store.runs.create(sample_manifest(days=1))
        lease = store.leases.acquire(lease_name(run.run_id), sample_holder(), 60)
        run = store.runs.transition(run, RunState.APPROVED)
        run = store.runs.transition(run, RunState.RUNNING, token=lease.token, base=None)
        (chunk,) = store.chunks.claim(run.run_id, lease, 1)
        record = StageRecord(
            run_id=run.run_id,
            token=chunk.token or 0,
            version="1",
            chunk_ids=(chunk.chunk_id,),
            digest=Digest(rows=rows, high="1", low="1"),
            seconds=seconds,
        )
        store.chunks.staged(record, {chunk.chunk_id: rows}, lease)
        assert recorded_hits(store.runs, "orders") is None, "it is not finished"
        store.runs.transition(run, RunState.STAGED, token=lease.token, staged="1")
        return recorded_hits(store.runs, "orders")


def test_how_well_estimates_hit_comes_from_runs_that_are_finished(tmp_path: Path) -> None:
    found = finished(tmp_path, 1_800, timedelta(seconds=10).total_seconds())
    assert found is not None
    assert found.rows == (2.0, 2.0)
    assert round(found.seconds[0], 2) == round(10 / middle(1, 10), 2)
    assert found.runs == 1
