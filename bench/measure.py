"""Measure contenders in turn, so that whatever else the machine does meets all of them alike."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

Seconds = list[float]


def _nothing() -> None:
    """Most contenders need no preparation."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One way of doing it. Only `work` is timed."""

    work: Callable[[], object]
    before: Callable[[], object] = _nothing
    after: Callable[[], object] = _nothing

    def timed(self, clock: Callable[[], float] = time.perf_counter) -> float:
        self.before()
        gc.collect()
        started = clock()
        self.work()
        seconds = clock() - started
        self.after()
        return seconds


def alternate(contenders: Mapping[str, Contender], rounds: int, warm_up: int = 1) -> dict[str, Seconds]:
    """Seconds of each contender in each round, without those of the warm-up.

    Every other round runs backwards: no contender always profits from coming after another.
    """
    seconds: dict[str, Seconds] = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(warm_up + rounds):
        for name in names if number % 2 == 0 else reversed(names):
            taken = contenders[name].timed()
            if number >= warm_up:
                seconds[name].append(taken)
    return seconds


def ratios(of: Seconds, to: Seconds) -> list[float]:
    """Round by round: both sides of a ratio met the same machine."""
    return [one / other for one, other in zip(of, to, strict=True)]


def median_ratio(of: Seconds, to: Seconds) -> float:
    return median(ratios(of, to))
