"""The shape of a policy file: who holds which role, what a run needs, what it may cost."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator, model_validator

from backcast.model.document import Document
from backcast.model.need import Budget, Prices
from backcast.model.policy import DEFAULT_MATRIX, Bound, Condition, Known, Policy, Rule
from backcast.model.request import MOST, Kind
from backcast.model.table import PublishMode
from backcast.project.tokens import is_token_hash
from backcast.project.values import Duration, Label

_NUMBER = r"\d{1,15}(?:\.\d+)?"
_ONE_SIDED = re.compile(rf"(?P<sign><=|>=|<|>)\s*(?P<number>{_NUMBER})")
_TWO_SIDED = re.compile(rf"(?P<low>{_NUMBER})\s*\.\.\s*(?P<high>{_NUMBER})")
_SIGNS = {"<": "below", "<=": "at_most", ">": "above", ">=": "at_least"}
_ENTRY = re.compile(r"(os:)?[A-Za-z0-9_][A-Za-z0-9_.@-]{0,63}\$?")


def _bound(value: object) -> object:
    """`< 7`, `>= 30`, `7..30` with both ends in it."""
    if not isinstance(value, str):
        raise ValueError("expected a range such as '< 7', '> 30' or 7..30")  # noqa: TRY004 - pydantic reports ValueErrors
    text = value.strip().replace("_", "")
    if found := _ONE_SIDED.fullmatch(text):
        return Bound.model_validate({_SIGNS[found["sign"]]: float(found["number"])})
    if found := _TWO_SIDED.fullmatch(text):
        if float(found["low"]) > float(found["high"]):
            raise ValueError(f"expected the smaller number first, got {value!r}")
        return Bound(at_least=float(found["low"]), at_most=float(found["high"]))
    raise ValueError(f"expected a range such as '< 7', '> 30' or 7..30, got {value!r}")


def _price(value: object) -> object:
    """`1.5`, or `0.50..2.00` for a price that is only known roughly."""
    text = value.strip() if isinstance(value, str) else ""
    if found := _TWO_SIDED.fullmatch(text):
        low, high = float(found["low"]), float(found["high"])
        if low > high:
            raise ValueError(f"expected the lower price first, got {value!r}")
        return low, high
    if re.fullmatch(_NUMBER, text):
        return float(text), float(text)
    raise ValueError(f"expected a price such as 1.5 or 0.5..2, got {value!r}")


def _several(value: object) -> object:
    return [value] if isinstance(value, str) else value


RangeOf = Annotated[Bound, BeforeValidator(_bound)]
Price = Annotated[tuple[float, float], BeforeValidator(_price)]
Labels = Annotated[tuple[Label, ...], BeforeValidator(_several)]


class WhenConfig(Document):
    """Which runs a rule is about. All that is given must hold."""

    days: RangeOf | None = None
    rows: RangeOf | None = None
    cost: RangeOf | None = None
    mode: Annotated[tuple[PublishMode, ...], BeforeValidator(_several)] = ()
    kind: Annotated[tuple[Kind, ...], BeforeValidator(_several)] = ()
    tier: Labels = ()
    whole_table: bool | None = None


class RuleConfig(Document):
    """What such runs need."""

    when: WhenConfig = WhenConfig()
    needs: Labels = ()
    notify: Annotated[tuple[str, ...], BeforeValidator(_several)] = ()
    within: Duration | None = None
    confirm: bool = False

    @model_validator(mode="after")
    def _fits(self) -> RuleConfig:
        if self.within is not None and not self.notify:
            raise ValueError("within says by when somebody is told: add notify")
        return self

    def resolve(self) -> Rule:
        return Rule(
            when=Condition(**{name: getattr(self.when, name) for name in WhenConfig.model_fields}),
            needs=self.needs,
            notify=self.notify,
            within_seconds=None if self.within is None else int(self.within.total_seconds()),
            confirm=self.confirm,
        )


class PersonConfig(Document):
    """How a person is recognised. The file holds the hash of a token, never a token."""

    token: str | None = Field(default=None, repr=False)
    os: str | None = None

    @field_validator("token")
    @classmethod
    def _hash(cls, text: str | None) -> str | None:
        if text is not None and not is_token_hash(text):
            raise ValueError("expected the hash of a token, as `python -m backcast.project.tokens` prints it")
        return text

    @model_validator(mode="after")
    def _known(self) -> PersonConfig:
        if self.token is None and self.os is None:
            raise ValueError("expected token, os or both: how is this person recognised?")
        return self


class BudgetConfig(Document):
    """The most that a run may write, cost and take."""

    rows: Annotated[int, Field(ge=1, le=MOST)] | None = None
    cost: Annotated[float, Field(ge=0, le=MOST)] | None = None
    duration: Duration | None = None


class PricesConfig(Document):
    """What work costs."""

    per_million_rows: Price = (0.0, 0.0)
    per_executor_hour: Price = (0.0, 0.0)
    executors: Annotated[int, Field(ge=1)] = 1
    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")] = "USD"


class PolicyConfig(Document):
    """The whole file, after its profile."""

    roles: Annotated[dict[Label, tuple[str, ...]], Field(min_length=1)]
    people: dict[Label, PersonConfig] = Field(default_factory=dict)
    matrix: tuple[RuleConfig, ...] | None = None
    expires: Duration = timedelta(days=7)
    own_runs: bool = True
    review: Labels = ()
    ticket: str | None = None
    reason: Annotated[int, Field(ge=0, le=200)] = 0
    budget: BudgetConfig | None = None
    prices: PricesConfig | None = None

    @field_validator("roles")
    @classmethod
    def _entries(cls, roles: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for role, entries in roles.items():
            for entry in entries:
                if not _ENTRY.fullmatch(entry):
                    raise ValueError(f"{role}: expected a person or os:ACCOUNT, got {entry!r}")
        return roles

    @field_validator("ticket")
    @classmethod
    def _pattern(cls, text: str | None) -> str | None:
        try:
            re.compile(text or "")
        except re.error as error:
            raise ValueError(f"expected a pattern such as DATA-\\d+, got {text!r}: {error}") from None
        return text

    @field_validator("expires")
    @classmethod
    def _some_time(cls, length: timedelta) -> timedelta:
        if length < timedelta(minutes=1):
            raise ValueError("expected at least 1m: nobody could use the approval")
        return length

    def resolve(self) -> Policy:
        prices = None if self.prices is None else Prices(**self.prices.model_dump())
        budget = self.budget
        length = None if budget is None or budget.duration is None else int(budget.duration.total_seconds())
        return Policy(
            roles=self.roles,
            people={name: Known(token=each.token, account=each.os) for name, each in self.people.items()},
            matrix=DEFAULT_MATRIX if self.matrix is None else tuple(each.resolve() for each in self.matrix),
            expires_seconds=int(self.expires.total_seconds()),
            own_runs=self.own_runs,
            review=self.review,
            ticket=self.ticket,
            reason=self.reason,
            budget=None if budget is None else Budget(rows=budget.rows, cost=budget.cost, seconds=length),
            prices=prices,
        )


def policy_keys_at(path: tuple[str | int, ...]) -> list[str]:
    """The keys that are known at this path of a policy file."""
    sections: dict[tuple[str, ...], Any] = {
        (): PolicyConfig,
        ("people", "*"): PersonConfig,
        ("matrix", "*"): RuleConfig,
        ("matrix", "*", "when"): WhenConfig,
        ("budget",): BudgetConfig,
        ("prices",): PricesConfig,
    }
    shape = tuple("*" if place == 1 else str(part) for place, part in enumerate(path))
    return list(sections[shape].model_fields) if shape in sections else []
