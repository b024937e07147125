"""`make soak MINUTES=n`: every point with every kill, then random schedules, until the time is up or all is not well.

    python -m tests.crash.soak --minutes 60                          half of them on each format
    python -m tests.crash.soak --minutes 60 --on delta
    python -m tests.crash.soak --on delta --seed 17                  one random schedule again
    python -m tests.crash.soak --on iceberg --faults publish.after-commit:jvm,undo.before-commit:both

Exit code 1 at the first anomaly; its folder is kept.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from backcast.faults import POINTS
from backcast.model.pipeline import TableFormat
from backcast.testing.faults import KILLS
from tests.crash.schedule import Schedule, chain, everything, live, random_schedule

_LAST_SECONDS = 60.0
"""What a life needs to end well, once nobody kills it any more."""


@dataclass
class Soak:
    """Lives on one format, one after the other until the deadline."""

    on: TableFormat
    deadline: float
    kills: int = 0
    lives: int = 0
    pairs: set[str] = field(default_factory=set)
    met: list[str] = field(default_factory=list)
    """The kills of the life that is under way."""

    def go_on(self, schedules: Iterator[Schedule]) -> bool:
        """False at an anomaly."""
        for schedule in schedules:
            if self.time_is_up():
                break
            if not self.go_through(schedule):
                return False
        tried, all_pairs = sum("#" not in each for each in self.pairs), len(POINTS) * len(KILLS)
        print(f"{self.on}: {self.kills} kills in {self.lives} lives, {tried} of {all_pairs} combinations", flush=True)
        return True

    def go_through(self, schedule: Schedule) -> bool:
        """False at an anomaly. A schedule that one life cannot meet as a whole goes on in the next."""
        while schedule.faults and not self.time_is_up():
            folder = Path(tempfile.mkdtemp(prefix="backcast-soak-"))
            print(f"{self.on}: {schedule.name}", flush=True)
            self.met = []
            try:
                left = live(schedule, self.on, folder, self.report, self.time_is_up)
            except Exception:  # noqa: BLE001 - whatever it is, it is the anomaly that this looks for
                traceback.print_exc()
                print(f"ANOMALY after {self.kills} kills; look at {folder}")
                print(f"again: python -m tests.crash.soak --on {self.on} {_again(schedule, self.met)}")
                return False
            shutil.rmtree(folder)
            self.lives += 1
            schedule = replace(schedule, faults=left)
        return True

    def report(self, fault: str, outcome: str) -> None:
        self.met.append(fault)
        self.kills += outcome != "not reached"
        if outcome != "not reached":
            self.pairs.add(fault.replace("#1:", ":"))
        print(f"  {fault:40} {outcome}", flush=True)

    def time_is_up(self) -> bool:
        return time.monotonic() > self.deadline - _LAST_SECONDS


def _again(schedule: Schedule, met: list[str]) -> str:
    """How to repeat it: up to and with the kill that was next."""
    return f"--seed {schedule.seed}" if schedule.seed else f"--faults {','.join(schedule.faults[: len(met) + 1])}"


def _schedules(arguments: argparse.Namespace) -> Iterator[Schedule]:
    if arguments.faults:
        yield chain(arguments.faults.split(","))
        return
    if arguments.seed is not None:
        yield random_schedule(arguments.seed)
        return
    yield from everything()
    first = random.SystemRandom().randrange(1, 1_000_000)
    yield from (random_schedule(first + number) for number in range(1_000_000))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.crash.soak", description="Kill it everywhere, then at random."
    )
    parser.add_argument("--minutes", type=float, default=10, help="for all formats together")
    parser.add_argument("--on", type=TableFormat, choices=list(TableFormat), help="only this format; else each in turn")
    parser.add_argument("--seed", type=int, help="only the random schedule of this number")
    parser.add_argument("--faults", help=f"only these kills: POINT[#N]:{'|'.join(KILLS)},...")
    arguments = parser.parse_args()
    formats = [arguments.on] if arguments.on else list(TableFormat)
    for on in formats:
        soak = Soak(on, time.monotonic() + arguments.minutes * 60 / len(formats))
        if not soak.go_on(_schedules(arguments)):
            return 1
    print("no row lost, doubled or seen half-way")
    return 0


if __name__ == "__main__":
    sys.exit(main())
