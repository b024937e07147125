"""How much, how long and for how much money: from what there is to read, and from recorded runs of the same pipeline.

Ranges say how far the numbers can be trusted: the slowest and fastest recorded job, and how far earlier estimates of
the pipeline were from what came of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

from backcast.model.manifest import Estimate
from backcast.model.need import Prices
from backcast.model.words import many

_GUESS_FAST = 500_000
_GUESS_SLOW = 30_000
_START_SECONDS = (5, 30)


@dataclass(frozen=True, slots=True)
class Rate:
    """Output rows per second that earlier runs of the pipeline staged: slowest and fastest job."""

    slow: float
    fast: float
    jobs: int


@dataclass(frozen=True, slots=True)
class Record:
    """What came of the estimates of finished runs: actual over estimated, the least and the most of all of them."""

    rows: tuple[float, float]
    seconds: tuple[float, float]
    runs: int


@dataclass(frozen=True, slots=True)
class Amounts:
    """What the plan found in the metadata of inputs and target."""

    input_rows: int
    input_bytes: int
    target_rows: int
    target_bytes: int = 0


def estimate(found: Amounts, rate: Rate | None, record: Record | None = None, prices: Prices | None = None) -> Estimate:
    """`output_rows` is what the scope holds now: a restatement of the same grain writes about as many."""
    output_rows = found.target_rows or found.input_rows
    if rate is not None and rate.slow > 0:
        low, high = output_rows / rate.fast, output_rows / rate.slow
        basis = f"{many(rate.jobs, 'recorded job')} of this pipeline"
    else:
        low, high = found.input_rows / _GUESS_FAST, found.input_rows / _GUESS_SLOW
        basis = "guessed: no run of this pipeline is recorded yet"
    low, high = low + _START_SECONDS[0], high + _START_SECONDS[1]
    rows: tuple[int, int] | None = None
    if record is not None:
        low, high = widened(low, high, record.seconds)
        rows = int(output_rows * min(1.0, record.rows[0])), ceil(output_rows * max(1.0, record.rows[1]))
    each = rows or (output_rows, output_rows)
    cost = None if prices is None else prices.cost((each[0], each[1]), (low, high))
    return Estimate(
        input_rows=found.input_rows,
        input_bytes=found.input_bytes,
        output_rows=output_rows,
        seconds_low=int(low),
        seconds_high=int(high),
        basis=basis,
        output_bytes=_bytes(found, output_rows),
        rows_low=None if rows is None else rows[0],
        rows_high=None if rows is None else rows[1],
        cost_low=None if cost is None else cost[0],
        cost_high=None if cost is None else cost[1],
        currency="" if prices is None else prices.currency,
        band="" if record is None else _band(record),
    )


def middle(low: float, high: float) -> float:
    """The one number for a range: as many times the low end as the high end is of it."""
    return sqrt(max(low, 1.0) * max(high, 1.0))


def widened(low: float, high: float, ratios: tuple[float, float]) -> tuple[float, float]:
    """The range, and what it would have had to be for earlier runs to lie in it. Never narrower."""
    centre = middle(low, high)
    return min(low, centre * ratios[0]), max(high, centre * ratios[1])


def _bytes(found: Amounts, rows: int) -> int | None:
    """By the size of the rows that are there now; None where there are none to go by."""
    if found.target_rows and found.target_bytes:
        return round(found.target_bytes / found.target_rows * rows)
    return None


def _band(record: Record) -> str:
    least, most = record.seconds
    band = f"{least:.1f}" if f"{least:.1f}" == f"{most:.1f}" else f"{least:.1f} to {most:.1f}"
    return f"{many(record.runs, 'finished run')} took {band} times what was estimated"
