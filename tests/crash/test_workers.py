"""Workers beside the driver of a run: each chunk once, the dead ones replaced, the stale ones found out.

Threads with control planes of their own stand for processes: nothing is shared but the store, the table and Spark.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from backcast.control import ControlPlane
from backcast.errors import BackcastError, Drifted, LeaseHeld, StateConflict
from backcast.model.pipeline import TableFormat
from backcast.model.run import Chunk, Lease, lease_name, turn_lease_name
from backcast.model.states import ChunkState, RunState
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.run.lease import HeldLease, acquire
from backcast.testing.faults import SimulatedCrash, at_point, trace
from tests.crash.lake import NEW, OUTSIDE, SCOPE_DAYS
from tests.crash.life import DoomedWiring, Life

_PATIENCE = 120.0
NewLife = Callable[..., Life]
ON_BOTH = pytest.mark.parametrize("new_life", list(TableFormat), indirect=True)


class Helper(threading.Thread):
    """A worker in a thread. `error` is what ended it."""

    def __init__(self, life: Life, wiring: type[Wiring] = Wiring) -> None:
        super().__init__(daemon=True)
        self._life, self._wiring = life, wiring
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self._life.perform("work", self._wiring)
        except (BackcastError, SimulatedCrash) as error:
            self.error = error


def planned(new_life: NewLife) -> Life:
    life = new_life()
    life.do("plan")
    return life


def ledger(life: Life) -> list[Chunk]:
    return life.look(lambda control: control.world.reader().chunks(life.run_id))


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def check_published(life: Life) -> None:
    assert life.state is RunState.ACCEPTED
    life.check_ledger()
    life.do("publish")
    assert life.lake.rows() == OUTSIDE + NEW


@ON_BOTH
def test_a_driver_and_its_workers_stage_each_chunk_once_and_one_after_the_other(
    new_life: NewLife, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver keeps its chunk in hand until the worker has staged the other one; and somebody else has the turn
    when the worker wants to commit.
    """
    life = planned(new_life)
    helper = Helper(life)
    theirs: list[Lease] = []
    alone: list[bool] = []
    asked = [0]

    def ask(*given: Any) -> HeldLease:
        """Twice the turn is somebody else's, then he is done."""
        try:
            return acquire(*given)
        except LeaseHeld:
            asked[0] += 1
            if asked[0] == 2:
                life.look(lambda control: control.world.store().leases.release(theirs.pop()))
            raise

    monkeypatch.setattr("backcast.run.turn.acquire", ask)

    def meet(name: str) -> None:
        if name == "chunk.before-commit" and threading.current_thread() is helper:
            theirs.append(life.look(_take_turn(life.run_id)))
        if name == "chunk.after-commit" and threading.current_thread() is helper:
            alone.append(not theirs)
        if name == "chunk.after-claim" and not helper.ident:
            helper.start()
            until(lambda: any(chunk.state is ChunkState.STAGED for chunk in ledger(life)))

    with trace(meet):
        life.perform("run")
    helper.join(_PATIENCE)
    assert helper.error is None
    assert alone == [True], "it waited for its turn"
    chunks = ledger(life)
    assert [chunk.attempts for chunk in chunks] == [1] * len(SCOPE_DAYS)
    assert len({chunk.lease for chunk in chunks}) == 2, "both had a part in it"
    check_published(life)


def _take_turn(run_id: str) -> Callable[[ControlPlane], Lease]:
    def take(control: ControlPlane) -> Lease:
        return control.world.store().leases.acquire(turn_lease_name(run_id), control.world.holder(), _PATIENCE)

    return take


@ON_BOTH
@pytest.mark.parametrize("point", ["chunk.after-claim", "chunk.before-commit", "chunk.after-commit"])
def test_the_chunks_of_a_worker_that_died_are_staged_by_others(new_life: NewLife, point: str) -> None:
    life = planned(new_life)
    helper = Helper(life, DoomedWiring)

    def meet(name: str) -> None:
        if threading.current_thread() is helper:
            if name == point:
                raise SimulatedCrash(name)
        elif name == "chunk.after-claim" and not helper.ident:
            helper.start()
            helper.join(_PATIENCE)
            assert sum(chunk.state is ChunkState.RUNNING for chunk in ledger(life)) == 2

    with trace(meet):
        life.perform("run")
    assert isinstance(helper.error, SimulatedCrash)
    assert max(chunk.attempts for chunk in ledger(life)) == 2
    check_published(life)


@ON_BOTH
def test_the_late_commit_of_a_worker_whose_lease_ended_is_found_and_staged_over(
    new_life: NewLife, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was given up, its chunk was staged by another, and then its commit lands after all.

    It stood still as a whole meanwhile: a worker that still looks after its lease finds out and does not commit.
    """
    renew = HeldLease._renew

    def stand_still(held: HeldLease) -> None:
        if "/worker/" not in held.lease.name:
            return renew(held)
        held._safe_until = float("inf")  # its clock stood still too
        return None

    monkeypatch.setattr(HeldLease, "_renew", stand_still)
    life = planned(new_life)
    helper = Helper(life)
    paused, go = threading.Event(), threading.Event()

    def meet(name: str) -> None:
        if threading.current_thread() is helper:
            if name == "chunk.before-commit":
                paused.set()
                assert go.wait(_PATIENCE)
            return
        if name == "chunk.after-claim" and not helper.ident:
            helper.start()
            assert paused.wait(_PATIENCE)
            with closing(Wiring(load_project(life.shop.root))) as world:
                (lease,) = world.store().runs.workers(life.run_id)
                world.store().leases.release(lease)
        if name == "run.before-reconcile" and not go.is_set():
            go.set()
            helper.join(_PATIENCE)

    with trace(meet):
        life.perform("run")
    assert isinstance(helper.error, LeaseHeld | StateConflict)
    told = [event.name for event in life.look(lambda control: control.logs(life.run_id))]
    assert told.count("chunks.strayed") == 1
    check_published(life)


def test_a_worker_goes_on_as_the_driver_when_that_has_died(new_life: NewLife) -> None:
    life = planned(new_life)
    helper = Helper(life)

    def meet(name: str) -> None:
        if threading.current_thread() is not helper and name == "chunk.after-claim":
            helper.start()
            until(lambda: any(chunk.state is ChunkState.STAGED for chunk in ledger(life)))
            raise SimulatedCrash(name)

    with trace(meet), pytest.raises(SimulatedCrash):
        life.perform("run", DoomedWiring)
    helper.join(_PATIENCE)
    assert helper.error is None
    check_published(life)


def test_a_worker_drives_as_soon_as_its_chunk_is_done(new_life: NewLife) -> None:
    """Not only when nothing is pending any more: meanwhile nobody would look after the run."""
    life = planned(new_life)
    helper = Helper(life)
    arrived, dead = threading.Event(), threading.Event()

    def meet(name: str) -> None:
        if name != "chunk.before-claim":
            return
        if threading.current_thread() is helper:
            arrived.set()
            assert dead.wait(_PATIENCE)
        else:
            helper.start()
            assert arrived.wait(_PATIENCE)
            raise SimulatedCrash(name)

    def give_up(control: ControlPlane) -> None:
        """The lease of a driver that is not heard of any more."""
        held = control.world.reader().holder(lease_name(life.run_id))
        assert held is not None
        control.world.store().leases.release(held)

    with trace(meet):
        with pytest.raises(SimulatedCrash):
            life.perform("run")
        life.look(give_up)
        dead.set()
        helper.join(_PATIENCE)
    assert helper.error is None
    assert len({chunk.lease for chunk in ledger(life)}) == 2, "one chunk as a worker, the other as the driver"
    check_published(life)


def test_a_worker_with_other_code_is_refused_and_the_driver_goes_on(new_life: NewLife) -> None:
    life = planned(new_life)
    refused: list[BaseException | None] = []

    def second() -> None:
        source = next(path for path in Path(life.shop.root).rglob("*.py"))
        text = source.read_text()
        source.write_text(text + "\n# changed\nOTHER = 1\n")
        helper = Helper(life)
        helper.start()
        helper.join(_PATIENCE)
        refused.append(helper.error)
        source.write_text(text)

    with at_point("chunk.after-claim", second):
        life.perform("run")
    assert isinstance(refused[0], Drifted)
    check_published(life)


def test_cancelling_waits_for_workers_and_leaves_nothing(new_life: NewLife) -> None:
    life = planned(new_life)
    helper = Helper(life)
    busy, go = threading.Event(), threading.Event()

    def meet(name: str) -> None:
        if threading.current_thread() is helper and name == "chunk.before-commit":
            busy.set()
            assert go.wait(_PATIENCE)
        if threading.current_thread() is not helper and name == "chunk.after-claim" and not helper.ident:
            helper.start()
            assert busy.wait(_PATIENCE)
            canceller.start()
            until(lambda: life.state is RunState.CANCELLING)
            threading.Timer(1.0, go.set).start()

    canceller = threading.Thread(target=lambda: life.perform("cancel"))
    with trace(meet), suppress(StateConflict):
        life.perform("run")
    canceller.join(_PATIENCE)
    helper.join(_PATIENCE)
    assert helper.error is None
    assert life.state is RunState.CANCELLED
    life.check_ledger()
    life.check_refs()


def test_a_worker_does_not_start_a_run_that_nobody_asked_for(new_life: NewLife) -> None:
    life = planned(new_life)
    with pytest.raises(StateConflict, match="planned"):
        life.perform("work")
    assert life.state is RunState.PLANNED
