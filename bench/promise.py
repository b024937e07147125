"""What a promise is, how big it is measured, and what came out."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from bench.measure import Sample, foreign_share, ratios


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much work each promise is measured on. The defaults are those of the promises."""

    rows: int = 5_000_000
    fewer_rows: int = 1_000_000
    days: int = 10
    diff_days: int = 100
    """Of a diff: one of them changed is one row of a hundred."""
    pairs: int = 5
    warm_up: int = 1
    """Rounds that are run first and not counted."""
    shards: int = 100
    """Files a day when there are many; with `days` they make the 1,000 files of the promise."""
    fewer_shards: int = 5
    other_files: int = 20_000
    cycles: int = 5
    starts: int = 9
    many_chunks: int = 1_000
    few_chunks: int = 10
    ledger_chunks: int = 50_000
    workers: int = 4
    records: int = 2_000_000


QUICK = Sizes(
    rows=2_000,
    fewer_rows=1_000,
    days=2,
    diff_days=2,
    pairs=1,
    warm_up=0,
    shards=4,
    fewer_shards=2,
    other_files=20,
    cycles=1,
    starts=1,
    many_chunks=6,
    few_chunks=2,
    ledger_chunks=200,
    workers=2,
    records=400,
)
"""Enough to see that everything still runs; the numbers say nothing."""


BUSY = 0.1
"""From this share of the machine's cores used by others on, a ratio is shown but not to be trusted."""


@dataclass(frozen=True, slots=True)
class Result:
    """One promise with what was measured. `numbers` holds everything raw."""

    name: str
    promise: str
    target: str
    measured: str
    held: bool
    on: str = ""
    """The table format or the database, where a promise is measured on more than one."""
    busy: bool = False
    """Others used the machine meanwhile: measure again when it is quiet."""
    skipped: bool = False
    """It could not be measured here: `measured` says why. Neither held nor missed."""
    promised: bool = True
    """Otherwise it is shown because people ask, and nothing depends on it."""
    numbers: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        if self.skipped:
            return "skipped"
        if not self.promised:
            return "shown" + (", busy machine" if self.busy else "")
        return ("held" if self.held else "missed") + (", busy machine" if self.busy else "")

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict}


def ratio_result(
    name: str, promise: str, limit: float | None, of: list[Sample], to: list[Sample], **numbers: Any
) -> Result:
    """A promise that one way takes at most `limit` times as long as the other; without one the ratio is only shown.

    CPU seconds are shown beside it.
    """
    found = ratios([each.seconds for each in of], [each.seconds for each in to])
    middle = median(found)
    foreign = foreign_share(*of, *to)
    cpu = sum(each.cpu for each in of) / max(sum(each.cpu for each in to), 0.01)
    return Result(
        name=name,
        promise=promise,
        target="shown" if limit is None else f"<= {limit:g}x",
        measured=f"{middle:.2f}x (cpu {cpu:.2f}x)",
        held=limit is None or middle <= limit,
        promised=limit is not None,
        busy=foreign is not None and foreign >= BUSY,
        numbers={
            "limit": limit,
            "median_ratio": round(middle, 3),
            "ratios": [round(each, 3) for each in found],
            "cpu_ratio": round(cpu, 3),
            "foreign_share": None if foreign is None else round(foreign, 3),
            "samples": [asdict(each) for each in of],
            "against": [asdict(each) for each in to],
            **numbers,
        },
    )
