"""Approvals as a run's history tells them. Pure: events in, who agreed and who is missing out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from backcast.model.document import Document
from backcast.model.need import ApprovalNeed, unfilled
from backcast.model.run import Event

GIVEN = "approval.given"
REFUSED = "approval.refused"


class Person(Document):
    """Somebody at the keyboard, and how that is known."""

    name: str
    how: str
    """`os-user`: by the uid of the process. `token`: by a secret that only this person has."""
    account: str
    """The OS account, whatever the method: one account is never two people."""
    roles: tuple[str, ...] = ()
    login: str | None = None
    """The account of the login behind it, where the system tells: nor is that, by way of su or sudo."""

    @property
    def names(self) -> frozenset[str]:
        """All that this person goes by."""
        return frozenset({self.name, self.account, self.login or self.account})


class Approval(Document):
    """One person's word about one manifest."""

    role: str
    by: str
    how: str
    account: str
    login: str | None = None
    comment: str
    manifest: str
    at: datetime
    expires_at: datetime | None = None

    @property
    def known_by(self) -> str:
        """How the person was recognised, in words."""
        known = "OS user" if self.how == "os-user" else f"{self.how} on account {self.account}"
        return known if self.login in (None, self.account) else f"{known}, logged in as {self.login}"


class Approvals(Document):
    """Where the approval of a run stands."""

    needed: tuple[str, ...] = ()
    given: tuple[Approval, ...] = ()
    """Those that count now, at most one of each person."""
    expired: tuple[Approval, ...] = ()
    lapsed: tuple[Approval, ...] = ()
    """Of people who no longer hold the role in which they agreed."""
    refused: Approval | None = None
    missing: tuple[str, ...] = ()
    notify: tuple[str, ...] = ()
    notify_by: datetime | None = None
    """By when they must have been told; None before the approval is complete, and without a time."""

    @property
    def complete(self) -> bool:
        return not self.missing and self.refused is None

    def why_missing(self, role: str) -> str:
        """What became of somebody's approval in that role; empty when nobody ever gave one."""
        told = [(each, f"{each.by}'s approval has expired") for each in self.expired]
        told += [(each, f"{each.by} no longer holds that role") for each in self.lapsed]
        mine = [(each.at, why) for each, why in told if each.role == role]
        return max(mine)[1] if mine else ""

    def of(self, person: Person) -> Approval | None:
        """What this person, or this account under another name, has said already."""
        return next((each for each in self.given if same(each, person)), None)


def approvals(
    need: ApprovalNeed | None,
    events: Iterable[Event],
    manifest: str,
    now: datetime | None,
    holds: Callable[[Approval], bool] = lambda _: True,
) -> Approvals:
    """Who agreed to this manifest, counted at that time; without a time, approvals that have expired count too.

    Of several words of one person, or of one account, the newest counts, if its role is one that the person `holds`.
    """
    said = [(event.name, approval_of(event)) for event in events if event.name in (GIVEN, REFUSED)]
    refused = next((each for name, each in said if name == REFUSED and each.manifest == manifest), None)
    words = [each for name, each in said if name == GIVEN and each.manifest == manifest]
    newest = [each for place, each in enumerate(words) if not any(same(other, each) for other in words[place + 1 :])]
    if need is None:
        return Approvals(refused=refused)
    newest = [each.model_copy(update={"expires_at": _expiry(each, need)}) for each in newest]
    relevant = [each for each in newest if each.role in need.roles and (need.own_runs or not _is_own(each, need))]
    lapsed = [each for each in relevant if not holds(each)]
    relevant = [each for each in relevant if each not in lapsed]
    valid = [each for each in relevant if now is None or (each.expires_at is not None and now < each.expires_at)]
    missing = unfilled(need.roles, [each.role for each in valid])
    complete_at = max((each.at for each in valid), default=None)
    within = need.within_seconds
    return Approvals(
        needed=need.roles,
        given=tuple(valid),
        expired=tuple(each for each in relevant if each not in valid),
        lapsed=tuple(lapsed),
        refused=refused,
        missing=missing,
        notify=need.notify,
        notify_by=None if missing or complete_at is None or within is None else complete_at + timedelta(seconds=within),
    )


def same(approval: Approval, other: Approval | Person) -> bool:
    """One person under two names, two people on one account, or of one login, are one."""
    name = other.by if isinstance(other, Approval) else other.name
    return approval.by == name or bool(_accounts(approval) & _accounts(other))


def _accounts(who: Approval | Person) -> frozenset[str]:
    return frozenset({who.account, who.login or who.account})


def as_data(
    person: Person, role: str, comment: str, manifest: str, policy: str, expires_at: datetime | None = None
) -> dict[str, Any]:
    """What the event of an approval, or of a refusal, records. A refusal does not expire."""
    data = {
        "role": role,
        "by": person.name,
        "how": person.how,
        "account": person.account,
        "comment": comment,
        "manifest": manifest,
        "policy": policy,
    }
    if person.login not in (None, person.account):
        data["login"] = person.login
    return data if expires_at is None else {**data, "expires_at": expires_at.isoformat()}


def approval_of(event: Event) -> Approval:
    """What somebody said, as the event of it tells."""
    data = {key: event.data.get(key) for key in Approval.model_fields if key != "at"}
    return Approval.model_validate({**data, "at": event.at})


def _expiry(approval: Approval, need: ApprovalNeed) -> datetime:
    """The earlier of what was recorded and what the need says now. Counted from the store's own time."""
    latest = approval.at + timedelta(seconds=need.expires_seconds)
    return latest if approval.expires_at is None else min(latest, approval.expires_at)


def _is_own(approval: Approval, need: ApprovalNeed) -> bool:
    return bool({approval.by, *_accounts(approval)} & set(need.planned_by))
