"""The matrix: which runs need whom. More reach never needs fewer people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backcast.model.need import ApprovalNeed, Budget, Prices, Reach, stricter, tighter
from backcast.model.policy import Bound, Condition, Policy, Rule, days_in, need_under, reach_of
from backcast.model.request import Kind
from backcast.model.scope import Scope
from backcast.model.table import PublishMode
from backcast.model.time import Interval, start_of_day
from backcast.testing.samples import sample_manifest

ROLES = dict.fromkeys(("team-lead", "data-lead", "manager", "director"), ("ann",))
DEFAULT = Policy(roles=ROLES)


def reach(days: float | None = 3, **changes: object) -> Reach:
    return Reach(
        days=days, rows=10, cost=None, mode=PublishMode.REPLACE, kind=Kind.RESTATEMENT, tier=None, whole_table=False
    ).model_copy(update=changes)


def need(policy: Policy = DEFAULT, **changes: object) -> ApprovalNeed:
    return need_under(policy, reach(**changes), ("ann",))  # type: ignore[arg-type]  # tests name any field


@pytest.mark.parametrize(
    ("days", "roles", "notified"),
    [
        (0.5, ("team-lead",), False),
        (6.99, ("team-lead",), False),
        (7, ("data-lead",), True),
        (30, ("data-lead",), True),
        (30.5, ("manager", "data-lead"), True),
        (365, ("manager", "data-lead"), True),
        (None, ("manager", "data-lead"), True),
    ],
)
def test_the_default_matrix_is_that_of_the_runbook(days: float | None, roles: tuple[str, ...], notified: bool) -> None:
    found = need(days=days)
    assert (found.roles, bool(found.notify), found.within_seconds) == (roles, notified, None)


@pytest.mark.parametrize("days", [1, 400, None])
def test_a_full_reprocess_needs_the_director_and_tells_people_in_time(days: float | None) -> None:
    found = need(days=days, whole_table=True)
    assert (found.roles, found.confirm) == (("director",), True)
    assert found.notify
    assert found.within_seconds


def test_a_bootstrap_counts_as_the_whole_table() -> None:
    manifest = sample_manifest()
    started = manifest.model_copy(update={"request": manifest.request.model_copy(update={"kind": Kind.BOOTSTRAP})})
    assert reach_of(started, None, whole_table=False).whole_table
    assert not reach_of(manifest, None, whole_table=False).whole_table


@given(st.lists(st.floats(0, 500), min_size=2, max_size=2))
def test_more_days_never_need_fewer_people(days: list[float]) -> None:
    few, many = sorted(days)
    assert len(need(days=few).roles) <= len(need(days=many).roles)


LOWER = st.sampled_from(["days", "rows", "cost"])


@given(
    st.lists(st.tuples(LOWER, st.integers(0, 100), st.sampled_from(sorted(ROLES))), max_size=6),
    st.tuples(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100)),
    st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50)),
)
def test_in_a_matrix_of_thresholds_whoever_is_needed_for_less_is_needed_for_more(
    rules: list[tuple[str, int, str]], small: tuple[int, int, int], more: tuple[int, int, int]
) -> None:
    matrix = tuple(
        Rule(when=Condition.model_validate({name: {"at_least": least}}), needs=(role,)) for name, least, role in rules
    )
    policy = Policy(roles=ROLES, matrix=matrix)
    one = need(policy, days=small[0], rows=small[1], cost=small[2])
    other = need(policy, days=small[0] + more[0], rows=small[1] + more[1], cost=small[2] + more[2])
    assert set(one.roles) <= set(other.roles)


def test_every_rule_that_matches_counts() -> None:
    matrix = (
        Rule(when=Condition(days=Bound(at_least=1)), needs=("data-lead",), notify=("x",), within_seconds=90),
        Rule(when=Condition(tier=("gold",)), needs=("manager", "data-lead"), notify=("y",), within_seconds=60),
        Rule(when=Condition(mode=(PublishMode.MERGE,)), needs=("director",), confirm=True),
    )
    policy = Policy(roles=ROLES, matrix=matrix)
    found = need(policy, tier="gold")
    assert (found.roles, found.notify, found.within_seconds, found.confirm) == (
        ("data-lead", "manager"),
        ("x", "y"),
        60,
        False,
    )
    assert need(policy, days=0).roles == ()
    assert need(policy, mode=PublishMode.MERGE).confirm


def test_the_reason_why_history_is_touched_decides_too() -> None:
    policy = Policy(roles=ROLES, matrix=(Rule(when=Condition(kind=(Kind.REPAIR, Kind.MIGRATION)), needs=("manager",)),))
    assert need(policy, kind=Kind.REPAIR).roles == ("manager",)
    assert need(policy, kind=Kind.RESTATEMENT).roles == ()


def test_a_plan_reaches_as_far_as_the_high_end_of_its_estimate() -> None:
    manifest = sample_manifest()
    guess = manifest.estimate.model_copy(update={"rows_high": 9_000, "cost_high": 12.5})
    request = manifest.request.model_copy(update={"kind": Kind.REPAIR})
    settings = manifest.settings.model_copy(update={"publish_mode": PublishMode.MERGE})
    changes = {"estimate": guess, "request": request, "settings": settings}
    found = reach_of(manifest.model_copy(update=changes), "gold", whole_table=False)
    assert (found.rows, found.cost, found.kind, found.mode) == (9_000, 12.5, Kind.REPAIR, PublishMode.MERGE)
    assert (found.tier, found.days) == ("gold", 3.0)
    assert reach_of(manifest, None, whole_table=False).rows == 2_700, "without a range it is the estimate itself"


def test_what_is_not_known_counts_as_more_than_any_number() -> None:
    assert Bound(above=10).holds(None)
    assert not Bound(below=10).holds(None)
    assert not Bound(at_least=1, at_most=10).holds(None)


def test_a_week_with_a_change_of_clocks_is_a_week() -> None:
    def over(first: str, last: str) -> float | None:
        start, end = (start_of_day(datetime.fromisoformat(day).date(), "Europe/Berlin") for day in (first, last))
        manifest = sample_manifest()
        window = Interval(start=start, end=end)
        scope = Scope(windows=(window,), predicate=manifest.scope.predicate)
        return days_in(manifest.model_copy(update={"scope": scope}))

    assert over("2026-03-23", "2026-03-30") == 7
    assert over("2026-10-01", "2026-10-31") == 30
    half = Interval(start=datetime(2026, 1, 1, tzinfo=UTC), end=datetime(2026, 1, 1, 12, tzinfo=UTC))
    scope = Scope(windows=(half, half.widened(timedelta(), timedelta())), predicate=sample_manifest().scope.predicate)
    assert days_in(sample_manifest().model_copy(update={"scope": scope})) == 1


def test_of_two_policies_the_stricter_of_each_counts() -> None:
    weak = need().model_copy(update={"expires_seconds": 50, "own_runs": True})
    strong = need(days=40).model_copy(update={"expires_seconds": 90, "own_runs": False, "confirm": True})
    both = stricter(weak, strong)
    assert both is not None
    assert both == stricter(both, weak)
    assert both.roles == ("team-lead", "manager", "data-lead")
    assert (both.expires_seconds, both.own_runs, both.confirm) == (50, False, True)
    assert stricter(None, weak) == stricter(weak, None) == weak
    assert stricter(None, None) is None


def test_the_tighter_of_two_budgets_counts_limit_by_limit() -> None:
    found = tighter(Budget(rows=10, seconds=5), Budget(rows=20, cost=1.5), None)
    assert found == Budget(rows=10, cost=1.5, seconds=5)
    assert tighter(Budget(), None) is None


def test_a_budget_tells_what_is_over_it_and_nothing_before() -> None:
    prices = Prices(per_million_rows=(1, 2), per_executor_hour=(0, 3.6), executors=10, currency="EUR")
    assert prices.cost((1_000_000, 2_000_000), (0, 100)) == (1.0, 5.0)
    assert Budget(rows=10).exceeded(10, 1e9) is None
    assert Budget(rows=10).exceeded(11, 0) == "11 rows are staged, 10 are allowed"
    assert Budget(seconds=10).exceeded(10**9, 10) is None
    assert "10 s are allowed" in str(Budget(seconds=10).exceeded(0, 11))
    costly = Budget(cost=5, prices=prices)
    assert costly.exceeded(2_000_000, 100) is None
    assert costly.exceeded(2_000_000, 200) == "it cost 6.00 EUR so far, 5.00 are allowed"
