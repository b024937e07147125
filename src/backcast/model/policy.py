"""Who must agree to a run, who is told, and what it may cost: the project's policy and what it asks of one plan."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from backcast.model.document import Document, later, sha256
from backcast.model.manifest import Manifest
from backcast.model.need import ApprovalNeed, Budget, Prices, Reach, together
from backcast.model.request import Kind
from backcast.model.table import PublishMode

WEEK = 7 * 86_400
_DAY = 86_400
_CLOCKS_MOVE = 1 / 24 + 1e-9


class Bound(Document):
    """A range of numbers. Without a bound on a side it has none there."""

    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None

    def holds(self, value: float | None) -> bool:
        """What is not known counts as larger than any number."""
        if value is None:
            return self.at_most is None and self.below is None
        return (
            (self.at_least is None or value >= self.at_least)
            and (self.above is None or value > self.above)
            and (self.at_most is None or value <= self.at_most)
            and (self.below is None or value < self.below)
        )


class Condition(Document):
    """All that is given holds. Nothing given: every run."""

    days: Bound | None = None
    rows: Bound | None = None
    cost: Bound | None = None
    mode: tuple[PublishMode, ...] = ()
    kind: tuple[Kind, ...] = ()
    tier: tuple[str, ...] = ()
    whole_table: bool | None = None

    def holds(self, reach: Reach) -> bool:
        return (
            (self.days is None or self.days.holds(reach.days))
            and (self.rows is None or self.rows.holds(reach.rows))
            and (self.cost is None or self.cost.holds(reach.cost))
            and (not self.mode or reach.mode in self.mode)
            and (not self.kind or reach.kind in self.kind)
            and (not self.tier or reach.tier in self.tier)
            and (self.whole_table is None or self.whole_table == reach.whole_table)
        )


class Rule(Document):
    """What runs of one kind need."""

    when: Condition = Condition()
    needs: tuple[str, ...] = ()
    """Roles, each to be filled by another person; one that is named twice by two."""
    notify: tuple[str, ...] = ()
    within_seconds: int | None = None
    """They are told at the latest so long after the approval is complete."""
    confirm: bool = False
    """`run`, `publish` and `backfill` take --yes."""


STAKEHOLDERS = ("stakeholders",)
DEFAULT_MATRIX = (
    Rule(when=Condition(days=Bound(below=7), whole_table=False), needs=("team-lead",)),
    Rule(
        when=Condition(days=Bound(at_least=7, at_most=30), whole_table=False), needs=("data-lead",), notify=STAKEHOLDERS
    ),
    Rule(when=Condition(days=Bound(above=30), whole_table=False), needs=("manager", "data-lead"), notify=STAKEHOLDERS),
    Rule(
        when=Condition(whole_table=True),
        needs=("director",),
        notify=STAKEHOLDERS,
        within_seconds=4 * 3600,
        confirm=True,
    ),
)
"""For a policy that names people and no matrix."""


class Known(Document):
    """How a person of the policy is recognised: by the hash of a token, by an OS account, or by either."""

    token: str | None = None
    account: str | None = None


class Policy(Document):
    """The policy file, resolved."""

    roles: dict[str, tuple[str, ...]]
    """Names of people, or `os:NAME` for an account, by role."""
    people: dict[str, Known] = Field(default_factory=dict)
    matrix: tuple[Rule, ...] = DEFAULT_MATRIX
    expires_seconds: int = WEEK
    own_runs: bool = True
    """Whether who asked for a run may be one of those who approve it."""
    review: tuple[str, ...] = ()
    """Roles that may accept what the gates of validation noticed; any role when there is none."""
    ticket: str | None = None
    """The pattern that a request's ticket must have."""
    reason: Annotated[int, later(0)] = 0
    """The least length of a reason."""
    budget: Budget | None = None
    prices: Prices | None = None

    def sha256(self) -> str:
        return sha256(self.canonical())

    def roles_of(self, name: str, how: str, account: str) -> tuple[str, ...]:
        """The roles of a person, known by that method, in the order of the policy."""

        def is_named(entry: str) -> bool:
            if entry.startswith("os:"):
                return how == "os-user" and entry == f"os:{account}"
            declared = self.people.get(entry)
            if declared is None or how == "token":
                return entry == name and (declared is not None or how == "os-user")
            # An account that only happens to be called like somebody who has a token is not that person.
            return declared.account == account

        return tuple(role for role, entries in self.roles.items() if any(map(is_named, entries)))


def need_under(policy: Policy, reach: Reach, planned_by: tuple[str, ...]) -> ApprovalNeed:
    """What the policy asks of a run that reaches so far: of every rule that matches, not only of the first."""
    rules = [rule for rule in policy.matrix if rule.when.holds(reach)]
    return ApprovalNeed(
        roles=together(rule.needs for rule in rules),
        notify=tuple(dict.fromkeys(name for rule in rules for name in rule.notify)),
        within_seconds=min((each.within_seconds for each in rules if each.within_seconds is not None), default=None),
        expires_seconds=policy.expires_seconds,
        confirm=any(rule.confirm for rule in rules),
        own_runs=policy.own_runs,
        planned_by=planned_by,
        reach=reach,
    )


def reach_of(manifest: Manifest, tier: str | None, *, whole_table: bool) -> Reach:
    """How far a plan reaches, in what a matrix asks about."""
    estimate = manifest.estimate
    return Reach(
        days=days_in(manifest),
        rows=max(estimate.rows_high or 0, estimate.output_rows, manifest.target.rows),
        cost=estimate.cost_high,
        mode=manifest.settings.publish_mode,
        kind=manifest.request.kind,
        tier=tier,
        whole_table=whole_table or manifest.request.kind is Kind.BOOTSTRAP,
    )


def days_in(manifest: Manifest) -> float | None:
    """The length of all windows in days; None for a run that names none. Days of 23 and 25 hours count as days."""
    windows = manifest.scope.windows
    if not windows:
        return None
    length = sum((each.end - each.start).total_seconds() for each in windows) / _DAY
    return float(round(length)) if abs(length - round(length)) <= _CLOCKS_MOVE else length
