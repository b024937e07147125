"""`make soak MINUTES=n`: every point with every kill, then random schedules, until the time is up or all is not well.

    python -m tests.crash.soak --minutes 60
    python -m tests.crash.soak --seed 17          one random schedule again
    python -m tests.crash.soak --point publish.after-commit --kill jvm

Every life is real processes on a lake of its own, beside a live writer and a reader.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from backcast.faults import POINTS
from backcast.model.states import RunState
from backcast.testing.faults import KILLS
from backcast.testing.shop import Shop
from tests.crash.lake import Lake
from tests.crash.process import RealLife
from tests.crash.test_every_point import STEPS

WAY = ("plan", "run", "publish", "undo", "gc")
LEFT = {
    RunState.PLANNED: 1,
    RunState.APPROVED: 1,
    RunState.RUNNING: 1,
    RunState.STAGED: 1,
    RunState.ACCEPTED: 2,
    RunState.PUBLISHING: 2,
    RunState.PUBLISHED: 3,
    RunState.UNDOING: 3,
    RunState.UNDONE: 4,
}
"""The first command of the way that is still to do, by the run's state."""


@dataclass(frozen=True)
class Schedule:
    """Kills in the order in which they happen: each is the command to reach and the fault to die of."""

    name: str
    kills: tuple[tuple[str, str], ...]

    @property
    def cancels(self) -> bool:
        return any(verb == "cancel" for verb, _ in self.kills)


def verb_of(point: str) -> str:
    first = point.partition(".")[0]
    return STEPS.get(first, first)


def all_schedules() -> Iterator[Schedule]:
    for point in POINTS:
        for kill in KILLS:
            yield Schedule(f"{point}:{kill}", ((verb_of(point), f"{point}:{kill}"),))


def random_schedule(seed: int) -> Schedule:
    """Up to four kills on the way from plan to gc; the same seed gives the same ones."""
    chance = random.Random(seed)  # noqa: S311 - repeatable is the point
    points = [each for each in POINTS if verb_of(each) in WAY]
    chosen = sorted(chance.sample(points, chance.randint(1, 4)), key=lambda each: WAY.index(verb_of(each)))
    kills = [(verb_of(each), f"{each}#{chance.choice((1, 1, 2))}:{chance.choice(KILLS)}") for each in chosen]
    return Schedule(f"seed {seed}: " + ", ".join(fault for _, fault in kills), tuple(kills))


def live_through(schedule: Schedule, root: Path) -> None:
    """One life. Raises when a row is lost, doubled or seen half-way, or when anything is left in limbo."""
    lake = Lake(root / "lake", "shop")
    lake.create()
    shop = Shop(root / "project", "lake.shop", None)  # type: ignore[arg-type]  # its processes bring their own
    shop.write(lake.root, live="keep", chunks_per_job=1, undo_window="0s")
    life = RealLife(shop, lake)
    way = ("plan", "run", "cancel") if schedule.cancels else WAY
    try:
        with life.witnessed() as witness:
            for verb, fault in schedule.kills:
                life.go(" ".join(way[_first(life, way) : way.index(verb) + 1]), fault)
            life.finish(" ".join(way[_first(life, way) :]))
        witness.verify()
        if lake.rows() != witness.expected("old"):
            raise AssertionError(f"the table is not what it was: {lake.rows() - witness.expected('old')} is new")
        life.check_ledger()
        life.check_refs()
    finally:
        life.close()
        lake.close()


def _first(life: RealLife, way: tuple[str, ...]) -> int:
    """Where to go on: the command that was cut short, which is repeated, or the next one."""
    return min(LEFT.get(life.state, len(way) - 1), len(way) - 1) if life.run_id else 0


def schedules(arguments: argparse.Namespace) -> Iterator[Schedule]:
    if arguments.seed is not None:
        yield random_schedule(arguments.seed)
        return
    if arguments.point:
        yield from (each for each in all_schedules() if each.name == f"{arguments.point}:{arguments.kill}")
        return
    yield from all_schedules()
    first = random.SystemRandom().randrange(1_000_000)
    yield from (random_schedule(first + number) for number in range(1_000_000))


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill Backcast at every point, then at random.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, help="one random schedule")
    parser.add_argument("--point", choices=POINTS)
    parser.add_argument("--kill", choices=KILLS, default="python")
    arguments = parser.parse_args()
    deadline = time.monotonic() + arguments.minutes * 60
    lived = 0
    for schedule in schedules(arguments):
        if time.monotonic() >= deadline:
            break
        print(f"{schedule.name} ... ", end="", flush=True)
        started = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="soak-") as folder:
            try:
                live_through(schedule, Path(folder))
            except Exception:  # noqa: BLE001 - whatever it is, it is the anomaly that this looks for
                print("ANOMALY")
                traceback.print_exc()
                print(f"after {lived} good lives; again: python -m tests.crash.soak {_again(schedule)}")
                return 1
        lived += 1
        print(f"ok, {time.monotonic() - started:.0f} s", flush=True)
    print(f"{lived} lives, no row lost, doubled or seen half-way")
    return 0


def _again(schedule: Schedule) -> str:
    if schedule.name.startswith("seed "):
        return f"--seed {schedule.name.split()[1].rstrip(':')}"
    point, _, kill = schedule.name.partition(":")
    return f"--point {point} --kill {kill}"


if __name__ == "__main__":
    sys.exit(main())
