"""What a promise is, how big it is measured, and what came out."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from bench.measure import Seconds, ratios


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much work each promise is measured on. The defaults are those of the promises."""

    rows: int = 5_000_000
    fewer_rows: int = 1_000_000
    days: int = 10
    pairs: int = 3
    shards: int = 100
    """Files a day when there are many; with `days` they make the 1,000 files of the promise."""
    fewer_shards: int = 5
    other_files: int = 20_000
    cycles: int = 5
    starts: int = 9
    chunks: int = 50_000
    workers: int = 4


QUICK = Sizes(
    rows=2_000,
    fewer_rows=1_000,
    days=2,
    pairs=1,
    shards=4,
    fewer_shards=2,
    other_files=20,
    cycles=1,
    starts=1,
    chunks=200,
    workers=2,
)
"""Enough to see that everything still runs; the numbers say nothing."""


@dataclass(frozen=True, slots=True)
class Result:
    """One promise with what was measured. `numbers` holds everything raw."""

    name: str
    promise: str
    target: str
    measured: str
    held: bool
    numbers: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return asdict(self)


def ratio_result(name: str, promise: str, limit: float, of: Seconds, to: Seconds, **numbers: Any) -> Result:
    """A promise that one way takes at most `limit` times as long as the other."""
    found = ratios(of, to)
    middle = median(found)
    return Result(
        name=name,
        promise=promise,
        target=f"<= {limit:g}x",
        measured=f"{middle:.2f}x",
        held=middle <= limit,
        numbers={
            "limit": limit,
            "median_ratio": round(middle, 3),
            "ratios": [round(each, 3) for each in found],
            "seconds": [round(each, 4) for each in of],
            "against_seconds": [round(each, 4) for each in to],
            **numbers,
        },
    )
