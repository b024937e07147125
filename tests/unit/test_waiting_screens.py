"""What a person sees who is asked to look: after a canary, under review, after a publish; and of a dataset."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from backcast.cli.commands.run import asked_canary
from backcast.cli.ending import exit_code
from backcast.cli.render.check import render_check
from backcast.cli.render.plan import render_plan
from backcast.cli.render.status import render_status
from backcast.cli.render.watch import render_watch
from backcast.cli.request import seconds
from backcast.errors import InvalidRequest
from backcast.model.approval import Approval, Approvals
from backcast.model.canary import Canary, CanaryVerdict, part_of, spread
from backcast.model.health import Gap, Health, Keys
from backcast.model.rule import Gates, Metric, Rule, RuleKind
from backcast.model.states import RunState
from backcast.model.time import Grain, Interval
from backcast.model.verdict import Check, Consequence, Review, Verdict
from backcast.model.watch import Look, Watch
from backcast.testing.samples import sample_manifest
from tests.unit.cli_screens import NOW, sample_plan, sample_run, sample_status, shown

FAILED = Check(name="changed rows", passed=False, detail="609 of 609 rows (100%)", consequence=Consequence.REVIEW)
PASSED = Check(name="schema", passed=True, detail="5 columns as planned")


def test_a_canary_says_what_passed_and_that_the_rest_waits() -> None:
    canary = CanaryVerdict(chunks=("2025-01-01",), staged="7", checks=(PASSED,))
    page = shown(render_status(sample_status(RunState.RUNNING, "#::", canary=canary), NOW))
    assert "✓ accepted  1 of 1 check passed in 2025-01-01" in page
    assert "▫ 2 held back" in page
    assert "nothing else is computed before you go on" in page
    assert page.index("backcast diff") < page.index("backcast run")


def test_a_run_under_review_shows_what_a_person_must_look_at() -> None:
    verdict = Verdict(
        run_id="r", accepted=False, base="1", staged="2", net_change="", checks=(PASSED, FAILED), partitions=(),
        rows=609, at=NOW,
    )  # fmt: skip
    page = shown(render_status(sample_status(RunState.REVIEW, "###", verdict=verdict), NOW))
    assert "? under review  1 of 2 checks passed" in page
    assert "609 of 609 rows (100%)" in page


def test_a_run_that_waits_for_people_says_who_agreed_until_when_and_who_is_missing() -> None:
    ann = Approval(
        role="lead", by="ann", how="token", account="ci", login="zoe", comment="fine", manifest="m", at=NOW,
        expires_at=NOW + timedelta(hours=2),
    )  # fmt: skip
    old = ann.model_copy(update={"role": "owner", "by": "bob"})
    found = Approvals(given=(ann,), lapsed=(old,), missing=("owner", "manager"), notify=("finance",))
    page = shown(render_status(sample_status(RunState.PLANNED, "...", approvals=found), NOW))
    for line in (
        "✓ ann as lead: fine  token on account ci, logged in as zoe, now",
        f"counts until {NOW + timedelta(hours=2):%Y-%m-%d %H:%M} UTC",
        "✗ owner: bob no longer holds that role",
        "✗ manager is missing",
        "notify finance before it is published",
    ):
        assert line in page


def test_a_failed_look_proposes_the_undo_and_a_good_one_does_not() -> None:
    name = sample_run().run_id
    look = Look(version="9", rows=4, checks=(FAILED, PASSED), at=NOW)
    page = shown(render_watch(Watch(run_id=name, until=NOW, looks=3, newest=look)))
    assert "FAILED" in page
    assert f"backcast undo {name}" in page
    good = Watch(run_id=name, until=None, looks=1, newest=look.model_copy(update={"checks": (PASSED,)}))
    assert "AS IT SHOULD BE" in shown(render_watch(good))
    assert "undo" not in shown(render_watch(good))


def test_gaps_are_shown_with_the_command_that_fills_the_first() -> None:
    window = Interval(start=datetime(2026, 1, 5, tzinfo=UTC), end=datetime(2026, 1, 7, tzinfo=UTC))
    health = Health(
        dataset="daily", table="lake.shop.daily", version="7", grain=Grain.DAY, zone="UTC", window=window, rows=12,
        without_time=1, pieces=2, usual=4, gaps=(Gap(window=window, pieces=2),), thin=(),
        keys=Keys(columns=("day",), nulls=0, doubles=1, example="day=2026-01-03"), pipelines=("daily",),
    )  # fmt: skip
    page = shown(render_check(health))
    assert "NOT SOUND" in page
    assert "2 days without a row, in 1 place" in page
    assert "1 row without a time that can be read" in page
    assert "1 key more than once  e.g. day=2026-01-03" in page
    assert "backcast plan daily --from 2026-01-05 --to 2026-01-07" in " ".join(page.split())


def test_doubled_keys_are_shown_with_where_they_lie_and_the_command_that_restates_it() -> None:
    whole = Interval(start=datetime(2026, 1, 1, tzinfo=UTC), end=datetime(2026, 1, 7, tzinfo=UTC))
    where = Interval(start=datetime(2026, 1, 3, tzinfo=UTC), end=datetime(2026, 1, 5, tzinfo=UTC))
    keys = Keys(columns=("id",), nulls=0, doubles=360, example="id=1", where=(where,))
    health = Health(
        dataset="daily", table="lake.shop.daily", version="7", grain=Grain.DAY, zone="UTC", window=whole, rows=12,
        without_time=0, pieces=6, usual=4, gaps=(), thin=(), keys=keys, pipelines=("added", "daily"),
        restated_by=("daily",),
    )  # fmt: skip
    page = shown(render_check(health))
    assert "360 keys more than once  e.g. id=1" in page
    assert "in 2026-01-03 .. 2026-01-04" in page
    assert "backcast plan daily --from 2026-01-03 --to 2026-01-05 --kind repair" in " ".join(page.split())
    assert "backcast plan" not in shown(render_check(health.model_copy(update={"restated_by": ()})))


def test_a_canary_is_a_number_or_names() -> None:
    assert asked_canary("3") == Canary(number=3)
    assert asked_canary("2026-01-05, 2026-01-06") == Canary(names=("2026-01-05", "2026-01-06"))
    with pytest.raises(InvalidRequest, match="names no chunk"):
        asked_canary(",")


def test_a_canary_is_judged_without_rules_about_the_end_of_the_scope() -> None:
    """Its newest row may be years older than the scope's end, and the run as a whole as fresh as it should be."""
    fresh = Rule(kind=RuleKind.FRESH, name="fresh", columns=("at",), within_seconds=60)
    named = Rule(kind=RuleKind.NOT_NULL, name="named", columns=("shop",))
    manifest = sample_manifest(days=3)
    settings = manifest.settings.model_copy(update={"rules": (fresh, named)})
    part = part_of(manifest.model_copy(update={"settings": settings}), (manifest.chunks[0].id,))
    assert part.settings.rules == (named,)
    assert [chunk.id for chunk in part.chunks] == [manifest.chunks[0].id]
    assert part.scope.windows == (manifest.chunks[0].window,)


def test_a_rejected_canary_tells_what_was_wrong_and_leads_to_the_difference() -> None:
    wrong = FAILED.model_copy(update={"consequence": Consequence.BLOCK})
    canary = CanaryVerdict(chunks=("2025-01-01",), staged="7", checks=(PASSED, wrong))
    status = sample_status(RunState.FAILED, "#::", canary=canary, next_command="backcast cancel r")
    page = shown(render_status(status, NOW))
    assert "✗ rejected" in page
    assert "before you go on" not in page
    assert page.index("backcast diff") < page.index("backcast cancel")


def test_what_a_person_accepted_is_no_failure_any_more() -> None:
    review = Review(by="cat", how="os-user", role="data-lead", comment="matches the ledger", at=NOW)
    verdict = Verdict(
        run_id="r", accepted=True, base="1", staged="2", net_change="", checks=(PASSED, FAILED), partitions=(),
        rows=609, at=NOW, review=review,
    )  # fmt: skip
    page = shown(render_status(sample_status(RunState.ACCEPTED, "###", verdict=verdict), NOW))
    assert "Looked at and accepted by cat as data-lead: matches the ledger" in page
    assert "failed" not in page


@pytest.mark.parametrize(("state", "code"), [("accepted", 0), ("review", 3), ("rejected", 3), ("failed", 5)])
def test_the_exit_code_says_whether_a_publish_may_follow(state: str, code: int) -> None:
    assert exit_code(RunState(state)) == code


def test_a_plan_names_the_rules_that_will_judge_it() -> None:
    rules = (
        Rule(kind=RuleKind.NOT_NULL, name="not null shop", columns=("shop",)),
        Rule(kind=RuleKind.RANGE, name="range amount", columns=("amount",), severity=Consequence.WARN),
    )
    gates = Gates(changed_rows=0.2, metrics=(Metric(name="breaches", sql="count(*)", falls=0.8),))
    settings = sample_manifest(days=3).settings.model_copy(update={"rules": rules, "gates": gates})
    page = " ".join(shown(render_plan(sample_plan(settings=settings)), 120).split())
    assert "1 rule that rejects: not null shop" in page
    assert "1 rule that warns: range amount" in page
    assert "2 gates that ask for a look: metric breaches, changed rows" in page


def test_chunks_of_a_canary_lie_far_from_each_other() -> None:
    names = [str(number) for number in range(10)]
    assert spread(names, 1) == ("5",)
    assert spread(names, 2) == ("0", "9")
    assert spread(names, 4) == ("0", "3", "6", "9")
    assert spread(names, 10) == tuple(names)


@pytest.mark.parametrize(("text", "expected"), [("30s", 30), ("5m", 300), ("2h", 7200), ("1d", 86_400)])
def test_durations_are_written_with_their_unit(text: str, expected: float) -> None:
    assert seconds(text, "--every") == expected


@pytest.mark.parametrize("text", ["", "5", "0s", "5 m", "-1s", "1w"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="--every"):
        seconds(text, "--every")
