"""Approvals as a run's history tells them: who counts, for how long, and who is missing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from backcast.model.approval import GIVEN, REFUSED, Approvals, Person, approvals, as_data
from backcast.model.need import ApprovalNeed, Reach
from backcast.model.request import Kind
from backcast.model.run import Event
from backcast.model.table import PublishMode

NOW = datetime(2026, 3, 1, tzinfo=UTC)
REACH = Reach(days=40, rows=1, cost=None, mode=PublishMode.REPLACE, kind=Kind.RESTATEMENT, tier=None, whole_table=False)


def need(*roles: str, **changes: object) -> ApprovalNeed:
    return ApprovalNeed(roles=roles, expires_seconds=3600, reach=REACH, planned_by=("zoe",)).model_copy(update=changes)


def said(
    by: str,
    role: str,
    *,
    name: str = GIVEN,
    minute: int = 0,
    account: str | None = None,
    manifest: str = "m",
    login: str | None = None,
) -> Event:
    person = Person(name=by, how="os-user" if account is None else "token", account=account or by, login=login)
    at = NOW + timedelta(minutes=minute)
    data = as_data(person, role, "fine", manifest, "p", at + timedelta(hours=1))
    return Event(run_id="r", number=1, at=at, name=name, data=data, previous="", sha256="")


def state(need: ApprovalNeed | None, *events: Event, minute: int = 1) -> Approvals:
    return approvals(need, events, "m", NOW + timedelta(minutes=minute))


def test_two_people_in_two_roles_complete_it() -> None:
    found = state(need("manager", "data-lead"), said("ann", "manager"), said("bob", "data-lead"))
    assert found.complete
    assert [each.by for each in found.given] == ["ann", "bob"]
    assert state(need("manager", "data-lead"), said("ann", "manager")).missing == ("data-lead",)


def test_one_person_is_never_two_whoever_they_say_they_are() -> None:
    both = need("manager", "data-lead")
    assert state(both, said("ann", "manager"), said("ann", "data-lead")).missing == ("manager",)
    shared = said("ann", "manager", account="ops"), said("bob", "data-lead", account="ops")
    assert state(both, *shared).missing == ("manager",)
    by_sudo = said("ann", "manager", login="ann"), said("bob", "data-lead", login="ann")
    assert state(both, *by_sudo).missing == ("manager",)
    apart = said("ann", "manager", account="ops"), said("bob", "data-lead", account="dba")
    assert state(both, *apart).complete


def test_a_role_that_is_needed_twice_is_two_people_who_hold_it() -> None:
    four_eyes = need("data-lead", "data-lead")
    assert state(four_eyes).missing == ("data-lead", "data-lead")
    once = said("ann", "data-lead"), said("ann", "data-lead", minute=1), said("bob", "data-lead", account="ann")
    assert state(four_eyes, *once).missing == ("data-lead",)
    assert state(four_eyes, *once, said("cat", "data-lead")).complete


def test_an_approval_counts_for_its_manifest_alone() -> None:
    assert state(need("manager"), said("ann", "manager", manifest="other")).missing == ("manager",)


def test_an_approval_expires_and_can_be_renewed() -> None:
    first = said("ann", "manager")
    assert state(need("manager"), first, minute=59).complete
    late = state(need("manager"), first, minute=60)
    assert (late.missing, [each.by for each in late.expired]) == (("manager",), ["ann"])
    assert state(need("manager"), first, said("ann", "manager", minute=50), minute=60).complete
    assert approvals(need("manager"), [first], "m", None).complete


def test_a_shorter_lifetime_of_today_counts_and_a_longer_one_does_not() -> None:
    first = said("ann", "manager")
    assert state(need("manager", expires_seconds=60), first, minute=2).missing == ("manager",)
    assert state(need("manager", expires_seconds=86_400), first, minute=61).missing == ("manager",)


def test_where_the_policy_says_so_nobody_counts_for_their_own_run() -> None:
    own = said("zoe", "manager")
    assert state(need("manager"), own).complete
    assert state(need("manager", own_runs=False), own).missing == ("manager",)
    other_name = said("cat", "manager", account="zoe")
    assert state(need("manager", own_runs=False), other_name).missing == ("manager",)


def test_a_refusal_is_final() -> None:
    found = state(need("manager"), said("ann", "manager"), said("bob", "data-lead", name=REFUSED))
    assert found.refused is not None
    assert not found.complete


def test_people_are_told_so_long_after_the_last_approval() -> None:
    told = need("manager", "data-lead", notify=("board",), within_seconds=7200)
    half = state(told, said("ann", "manager"))
    assert (half.notify, half.notify_by) == (("board",), None)
    whole = state(told, said("ann", "manager"), said("bob", "data-lead", minute=5), minute=6)
    assert whole.notify_by == NOW + timedelta(minutes=5, hours=2)


def test_without_a_policy_nobody_is_missing() -> None:
    assert state(None).complete
    assert state(need()).complete
