"""CPU seconds, ours and everybody's: on a machine that others use, ratios of wall time can say anything."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds so far. `everybody` is None where the system does not tell."""

    ours: float
    everybody: float | None

    @classmethod
    def now(cls) -> Usage:
        own = os.times()
        ours = own.user + own.system + own.children_user + own.children_system
        if not (_PROC / "stat").is_file():
            return cls(ours, None)
        return cls(ours + _descendants(), _everybody())


def _descendants() -> float:
    """Of processes that this one started and that still live, such as Spark's JVM."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
            seconds[int(folder.name)] = sum(map(int, fields[11:15])) / _TICKS
    found, frontier = 0.0, {os.getpid()}
    while frontier:
        frontier = {pid for pid, parent in parents.items() if parent in frontier}
        found += sum(seconds[pid] for pid in frontier)
    return found


def _everybody() -> float:
    """Busy time of all cores: everything but idle and waiting for disks. Time taken by other machines counts too."""
    user, nice, system, _idle, _wait, irq, soft, steal = map(
        int, (_PROC / "stat").read_text().partition("\n")[0].split()[1:9]
    )
    return (user + nice + system + irq + soft + steal) / _TICKS


_TICKS = os.sysconf("SC_CLK_TCK")
