"""What a plan asks of people and may cost, as its manifest records it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

from backcast.model.document import Document, later
from backcast.model.request import Kind
from backcast.model.run import Event
from backcast.model.table import PublishMode

OVER = "over_budget"
"""In the event of a run that failed because it wrote, took or cost more than it may."""


class Reach(Document):
    """How far a run reaches: what a policy's matrix asks about."""

    days: float | None
    """None for a run that names no window of time: it counts as longer than any."""
    rows: int
    cost: float | None
    """The high end of the estimate; None where the policy has no prices."""
    mode: PublishMode
    kind: Kind
    tier: str | None
    whole_table: bool


class ApprovalNeed(Document):
    """Who must agree, who is told by when, and how long an approval counts."""

    roles: tuple[str, ...]
    """Each is filled by another person; a role that is here twice by two."""
    notify: tuple[str, ...] = ()
    within_seconds: int | None = None
    expires_seconds: int
    confirm: bool = False
    own_runs: bool = True
    planned_by: tuple[str, ...] = ()
    """Who planned: the name and, by its uid, the OS account; and that of the login behind it, if it is another."""
    reach: Reach


def together(asked: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Every role, as often as any of them asks for it."""
    found: list[str] = []
    for roles in asked:
        found += [role for place, role in enumerate(roles, 1) if roles[:place].count(role) > found.count(role)]
    return tuple(found)


def unfilled(needed: Sequence[str], filled: Sequence[str]) -> tuple[str, ...]:
    """What is still missing. A role that is needed twice is missing once when one person has filled it."""
    return tuple(role for place, role in enumerate(needed, 1) if needed[:place].count(role) > filled.count(role))


def stricter(one: ApprovalNeed | None, other: ApprovalNeed | None) -> ApprovalNeed | None:
    """What both ask for together: a policy that was changed after the plan can add to it and take nothing away."""
    if one is None or other is None:
        return one or other
    within = [each.within_seconds for each in (one, other) if each.within_seconds is not None]
    return ApprovalNeed(
        roles=together((one.roles, other.roles)),
        notify=tuple(dict.fromkeys((*one.notify, *other.notify))),
        within_seconds=min(within, default=None),
        expires_seconds=min(one.expires_seconds, other.expires_seconds),
        confirm=one.confirm or other.confirm,
        own_runs=one.own_runs and other.own_runs,
        planned_by=one.planned_by or other.planned_by,
        reach=one.reach,
    )


class Prices(Document):
    """What work costs: a low and a high price each, in one currency."""

    per_million_rows: tuple[float, float] = (0.0, 0.0)
    per_executor_hour: tuple[float, float] = (0.0, 0.0)
    executors: int = 1
    currency: str = "USD"

    def cost(self, rows: tuple[float, float], seconds: tuple[float, float]) -> tuple[float, float]:
        """Of so many rows written in so much time, both from the least to the most."""
        low, high = (
            rows[end] / 1_000_000 * self.per_million_rows[end]
            + seconds[end] / 3600 * self.executors * self.per_executor_hour[end]
            for end in (0, 1)
        )
        return round(low, 2), round(high, 2)


class Budget(Document):
    """The most that a run may write, cost and take. None: no limit."""

    rows: int | None = None
    cost: float | None = None
    seconds: int | None = None
    prices: Annotated[Prices | None, later(None)] = None
    """By which the cost so far is told."""

    @property
    def is_empty(self) -> bool:
        return self.rows is None and self.cost is None and self.seconds is None

    @property
    def limits_time(self) -> bool:
        """Whether a job that takes long enough is over the limit, however few rows it writes."""
        return self.seconds is not None or (self.cost is not None and self.prices is not None)

    def exceeded(self, rows: int, seconds: float) -> str | None:
        """What is over the limit, in words; None while nothing is."""
        if self.rows is not None and rows > self.rows:
            return f"{rows:,} rows are staged, {self.rows:,} are allowed"
        if self.seconds is not None and seconds > self.seconds:
            return f"jobs took {round(seconds):,} s, {self.seconds:,} s are allowed"
        if self.cost is not None and self.prices is not None:
            spent = self.prices.cost((rows, rows), (seconds, seconds))[1]
            if spent > self.cost:
                return f"it cost {spent:,.2f} {self.prices.currency} so far, {self.cost:,.2f} are allowed"
        return None


def is_over(events: Iterable[Event]) -> bool:
    """Whether the run failed last because it would have cost too much: repeated as it is, it would fail again."""
    failures = [event for event in events if event.name == "state.failed"]
    return bool(failures) and bool(failures[-1].data.get(OVER))


def tighter(*budgets: Budget | None) -> Budget | None:
    """The least of each limit; None when there is none at all."""
    known = [each for each in budgets if each is not None]

    def least(values: list[float | None]) -> float | None:
        return min((each for each in values if each is not None), default=None)

    rows, seconds = least([each.rows for each in known]), least([each.seconds for each in known])
    found = Budget(
        rows=None if rows is None else int(rows),
        cost=least([each.cost for each in known]),
        seconds=None if seconds is None else int(seconds),
        prices=next((each.prices for each in known if each.prices is not None), None),
    )
    return None if found.is_empty else found
