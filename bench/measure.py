"""Measure contenders in turn, so that whatever else the machine does meets all of them alike."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median

from bench.load import Usage


@dataclass(frozen=True, slots=True)
class Sample:
    """One measurement."""

    seconds: float
    cpu: float
    """CPU seconds of this process and those it started."""
    foreign: float | None
    """Share of the machine's cores that others used meanwhile; None where the system does not tell."""


class Meter:
    """Measures from when it is made."""

    def __init__(self) -> None:
        gc.collect()
        self._usage, self._started = Usage.now(), time.perf_counter()

    def sample(self) -> Sample:
        """What it took up to here."""
        seconds, usage = time.perf_counter() - self._started, Usage.now()
        cpu = usage.ours - self._usage.ours
        if usage.everybody is None or self._usage.everybody is None:
            return Sample(seconds, cpu, None)
        others = max(0.0, usage.everybody - self._usage.everybody - cpu)
        return Sample(seconds, cpu, others / (seconds * (os.cpu_count() or 1)))


def timed(work: Callable[[], object]) -> Sample:
    meter = Meter()
    work()
    return meter.sample()


def _nothing() -> None:
    """Most contenders need no preparation."""


@dataclass(frozen=True, slots=True)
class Contender:
    """One way of doing it. Only `work` is timed."""

    work: Callable[[], object]
    before: Callable[[], object] = _nothing
    after: Callable[[], object] = _nothing

    def sample(self) -> Sample:
        self.before()
        taken = timed(self.work)
        self.after()
        return taken


def alternate(contenders: Mapping[str, Contender], rounds: int, warm_up: int = 1) -> dict[str, list[Sample]]:
    """Samples of each contender, one a round, without those of the warm-up.

    Every other round runs backwards: no contender always profits from coming after another.
    """
    samples: dict[str, list[Sample]] = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(warm_up + rounds):
        for name in names if number % 2 == 0 else reversed(names):
            taken = contenders[name].sample()
            if number >= warm_up:
                samples[name].append(taken)
    return samples


def ratios(of: list[float], to: list[float]) -> list[float]:
    """Round by round: both sides of a ratio met the same machine."""
    return [one / other for one, other in zip(of, to, strict=True)]


def foreign_share(*samples: Sample) -> float | None:
    """How much of the machine others used while these were taken, in the middle of them."""
    known = [sample.foreign for sample in samples if sample.foreign is not None]
    return median(known) if known else None
