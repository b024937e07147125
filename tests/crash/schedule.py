"""Which kills a life goes through, and the living: real processes on their own lake, beside a writer and a reader."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

from backcast.errors import BackcastError
from backcast.faults import POINTS
from backcast.model.pipeline import TableFormat
from backcast.model.states import RunState
from backcast.testing.faults import KILLS
from backcast.testing.shop import Shop
from tests.crash.lake import sale_of
from tests.crash.lakes import filled_lake
from tests.crash.life import Verb, verb_of
from tests.crash.process import RealLife
from tests.crash.witness import Anomaly, Witness

WAYS: dict[str, tuple[str, ...]] = {
    "cancel": ("plan", "run", "cancel"),
    "publish": ("plan", "run", "publish"),
    "undo": ("plan", "run", "publish", "undo"),
    "gc": ("plan", "run", "publish", "undo", "gc"),
    "restage": ("plan", "run", "publish"),
}
"""The commands of a life, by the last of them; on the last of these ways a live row in scope is staged again."""

_AGAIN = ("restage", "stage", "chunk", "validate", "publish")
"""First words of the points that a publish passes which stages again, in this order."""

_NEXT = {
    RunState.ACCEPTED: 2,
    RunState.PUBLISHING: 2,
    RunState.CANCELLING: 2,
    RunState.CANCELLED: 2,
    RunState.PUBLISHED: 3,
    RunState.UNDOING: 3,
    RunState.UNDONE: 4,
}
"""The command of the way that is still to do or was cut short, by the run's state; `run` in any other."""


@dataclass(frozen=True)
class Schedule:
    """Kills in the order in which they are met. `sure`: each must be met, in a new life if not in this one."""

    name: str
    way: tuple[str, ...]
    faults: tuple[str, ...]
    sure: bool
    seed: int = 0

    @property
    def restages(self) -> bool:
        return any(verb_of(each) == "restage" for each in self.faults)

    def command(self, fault: str) -> int:
        """The command of the way in which the fault is met."""
        return self.way.index("publish" if self.restages else verb_of(fault))


def everything() -> Iterator[Schedule]:
    """Every point with every kill: three times all points, with another kill each time."""
    for shift in range(len(KILLS)):
        faults = [f"{point}:{KILLS[(n + shift) % len(KILLS)]}" for n, point in enumerate(POINTS)]
        apart = {verb: [each for each in faults if verb_of(each) == verb] for verb in ("cancel", "restage")}
        yield chain([each for each in faults if verb_of(each) not in apart])
        yield from (chain(each) for each in apart.values())


def chain(faults: list[str]) -> Schedule:
    """These kills in this order, which must be the order of the flow."""
    verbs: set[Verb] = {verb_of(each) for each in faults}
    goal = next((each for each in ("cancel", "restage") if each in verbs), "gc")
    return Schedule(f"{len(faults)} kills on the way to {goal}", WAYS[goal], tuple(faults), sure=True)


def random_schedule(seed: int) -> Schedule:
    """A few kills on some way; the same seed gives the same ones, and the same pace of the live writer."""
    chance = random.Random(seed)  # noqa: S311 - repeatable is the point
    goal = chance.choice(tuple(WAYS))
    points = [each for each in POINTS if verb_of(each) in WAYS[goal]]
    if goal == "restage":
        points = [each for word in _AGAIN for each in POINTS if each.startswith(f"{word}.")]
    chosen = sorted(chance.choices(points, k=chance.randint(1, 4)), key=points.index)
    faults = tuple(f"{each}#{chance.choice((1, 1, 1, 2))}:{chance.choice(KILLS)}" for each in chosen)
    return Schedule(f"seed {seed}, to {goal}", WAYS[goal], faults, sure=False, seed=seed)


Report = Callable[[str, str], None]
"""Is told each fault and what came of it."""


def live(
    schedule: Schedule, on: TableFormat, root: Path, report: Report, time_is_up: Callable[[], bool]
) -> tuple[str, ...]:
    """One life through the schedule's faults. Returns those that it could not meet any more.

    Raises Anomaly, or whatever else went wrong: rows lost, doubled or seen half-way, anything left in limbo.
    """
    life = _born(root, on, keeps=not schedule.restages)
    try:
        with life.witnessed(_pauses(schedule.seed)) as witness:
            if schedule.restages:
                _to_restage(life, witness)
            left = _through_kills(life, schedule, report, time_is_up)
            life.finish(" ".join(schedule.way[_next(life, schedule.way) :]))
        _examine(life, witness)
        if schedule.restages and life.publications()[-1].amendment == 0:
            raise Anomaly("nothing was staged again")
    finally:
        life.close()
        life.lake.close()
    return left


def _born(root: Path, on: TableFormat, *, keeps: bool) -> RealLife:
    project, catalog = root / "project", root / "catalog"
    lake = filled_lake(on, project, catalog, "shop")
    shop = Shop(project, "lake.shop", None, on)  # type: ignore[arg-type]  # its processes bring their own
    shop.write(catalog, live="keep" if keeps else "restage", chunks_per_job=1, undo_window="0s")
    return RealLife(shop, lake, keeps=keeps)


def _to_restage(life: RealLife, witness: Witness) -> None:
    """Up to a complete stage, and then a live row in scope that the inputs explain."""
    life.finish("plan run")
    row = witness.append(life.lake, scope=True)
    life.lake.sell(sale_of(row))


def _pauses(seed: int) -> Iterator[float] | None:
    chance = random.Random(seed)  # noqa: S311 - repeatable is the point
    return (chance.uniform(0.2, 4.0) for _ in repeat(None)) if seed else None


def _through_kills(
    life: RealLife, schedule: Schedule, report: Report, time_is_up: Callable[[], bool]
) -> tuple[str, ...]:
    for met, fault in enumerate(schedule.faults):
        if time_is_up():
            return schedule.faults[met:]
        goal = schedule.command(fault)
        start = min(_next(life, schedule.way), goal)
        error = life.go(" ".join(schedule.way[start : goal + 1]), fault)
        if isinstance(error, BackcastError) and error.exit_code not in (5, 6):
            raise Anomaly(f"{fault} ended in {error!r}")
        report(fault, "not reached" if error is None else type(error).__name__)
        if error is None and schedule.sure:
            if met == 0:
                raise Anomaly(f"{fault} was never reached")
            # A JVM that was killed lets Python go on for a while: this point lies behind it now.
            return schedule.faults[met:]
    return ()


def _next(life: RealLife, way: tuple[str, ...]) -> int:
    return min(_NEXT.get(life.state, 1) if life.run_id else 0, len(way) - 1)


def _examine(life: RealLife, witness: Witness) -> None:
    released = life.state is not RunState.CANCELLED and life.publications()[-1].released_at is not None
    witness.verify(None if released else life.story())
    expected = witness.expected("new" if life.state is RunState.PUBLISHED else "old")
    now = life.lake.rows()
    if now != expected:
        raise Anomaly(f"the table lacks {expected - now} and has {now - expected} too many")
    life.check_ledger()
    life.check_refs()
