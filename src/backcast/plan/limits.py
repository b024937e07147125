"""What a plan may cost and what it has room for: findings before anything is computed. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from backcast.model.finding import Finding, block, note, warn
from backcast.model.manifest import Estimate
from backcast.model.need import Budget, Prices, tighter
from backcast.model.policy import Policy
from backcast.model.request import Request

_MEMORIES = 16
"""Spark spills what does not fit; a chunk of that many times its memory is a job that may not end."""
_HEADROOM = 1.2


@dataclass(frozen=True, slots=True)
class Room:
    """Bytes that are free where the table lies and where Spark spills to, and what its tasks share. None: unknown."""

    disk: int | None = None
    scratch: int | None = None
    memory: int | None = None


def budget_of(request: Request, policy: Policy | None) -> Budget | None:
    """The tighter of what was asked for and what the policy allows; None without any limit."""
    own = Budget(rows=request.max_rows, cost=request.max_cost, seconds=request.max_seconds)
    found = tighter(own, None if policy is None else policy.budget)
    return None if found is None else found.model_copy(update={"prices": _prices(policy)})


def _prices(policy: Policy | None) -> Prices | None:
    return None if policy is None else policy.prices


def budget_findings(budget: Budget | None, estimate: Estimate) -> list[Finding]:
    """Blocks what is over the limit even if all goes well, warns of what is over it if it does not."""
    if budget is None:
        return []
    rows = estimate.rows_low or estimate.output_rows, estimate.rows_high or estimate.output_rows
    found = [
        _over("budget.rows", "rows", rows, budget.rows, "{:,.0f} rows"),
        _over("budget.duration", "time", (estimate.seconds_low, estimate.seconds_high), budget.seconds, "{:,.0f} s"),
    ]
    if budget.cost is not None and (estimate.cost_low is None or estimate.cost_high is None):
        found.append(
            block(
                "budget.no-prices",
                "the cost is limited, and nothing says what work costs",
                "declare `prices` in the policy file, or leave the limit out",
            )
        )
    elif estimate.cost_low is not None and estimate.cost_high is not None:
        cost = estimate.cost_low, estimate.cost_high
        found.append(_over("budget.cost", "cost", cost, budget.cost, f"{{:,.2f}} {estimate.currency}"))
    return [each for each in found if each is not None]


def _over(code: str, what: str, estimated: tuple[float, float], limit: float | None, form: str) -> Finding | None:
    if limit is None or estimated[1] <= limit:
        return None
    said = f"{form.format(limit)} are allowed"
    if estimated[0] > limit:
        reason = f"at least {form.format(estimated[0])} are expected, {said}"
        return block(code, reason, f"ask for less, or raise the budget of {what}")
    reason = f"up to {form.format(estimated[1])} are expected, {said}"
    return warn(code, reason, "the run stops when it gets there; its stage is then of no use")


def room_findings(estimate: Estimate, chunks: int, room: Room) -> list[Finding]:
    """Whether the stage fits beside the table, and one chunk's input into memory and scratch space."""
    found = []
    stage = estimate.output_bytes if estimate.output_bytes is not None else estimate.input_bytes
    if room.disk is not None and stage * _HEADROOM > room.disk:
        found.append(
            block(
                "capacity.disk",
                f"the stage takes about {_gib(stage)}, and {_gib(room.disk)} are free where the table lies",
                "free some space (backcast gc), or restate fewer days at once",
            )
        )
    chunk = estimate.input_bytes // max(1, chunks)
    if room.scratch is not None and chunk > room.scratch:
        found.append(
            warn(
                "capacity.scratch",
                f"a chunk reads about {_gib(chunk)}, and {_gib(room.scratch)} are free where Spark spills to",
                "set spark.local.dir to a larger disk, or use a finer grain",
            )
        )
    if room.memory is not None and chunk > _MEMORIES * room.memory:
        found.append(
            note(
                "capacity.memory",
                f"a chunk reads about {_gib(chunk)}, with {_gib(room.memory)} of memory for Spark's tasks",
                "raise spark.driver_memory or use a finer grain if jobs spill without end",
            )
        )
    return found


def _gib(amount: int) -> str:
    return f"{amount / 1024**3:,.1f} GiB"
