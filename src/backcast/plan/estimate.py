"""How much and how long: from what there is to read, and from recorded runs of the same pipeline when there are any."""

from __future__ import annotations

from dataclasses import dataclass

from backcast.model.manifest import Estimate

_GUESS_FAST = 500_000
_GUESS_SLOW = 30_000
_START_SECONDS = (5, 30)


@dataclass(frozen=True, slots=True)
class Rate:
    """Output rows per second that earlier runs of the pipeline staged: slowest and fastest job."""

    slow: float
    fast: float
    jobs: int


def estimate(input_rows: int, input_bytes: int, target_rows: int, rate: Rate | None) -> Estimate:
    """`output_rows` is what the scope holds now: a restatement of the same grain writes about as many."""
    output_rows = target_rows or input_rows
    if rate is not None and rate.slow > 0:
        low, high = output_rows / rate.fast, output_rows / rate.slow
        basis = f"{rate.jobs} recorded job{'s' if rate.jobs != 1 else ''} of this pipeline"
    else:
        low, high = input_rows / _GUESS_FAST, input_rows / _GUESS_SLOW
        basis = "guessed: no run of this pipeline is recorded yet"
    return Estimate(
        input_rows=input_rows,
        input_bytes=input_bytes,
        output_rows=output_rows,
        seconds_low=int(low) + _START_SECONDS[0],
        seconds_high=int(high) + _START_SECONDS[1],
        basis=basis,
    )
