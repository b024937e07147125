"""The life of a run inside this process: verbs that crash at a point, lose all memory, and are repeated until done."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import pytest

from backcast.attest.bundle import bundle
from backcast.attest.step import attest
from backcast.attest.verify import verify
from backcast.control import ControlPlane
from backcast.errors import StateConflict
from backcast.model.run import Holder, Publication, Run, lease_name
from backcast.model.stage import publish_fence, stages_of, undo_fence
from backcast.model.states import ChunkState, RunState
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.spark import processes
from backcast.testing.faults import SimulatedCrash, crash_at, nothing, trace
from tests.crash.lake import SCOPE, Lake, Row, live_row, sale_of
from tests.crash.witness import View, Witness, slowing

if TYPE_CHECKING:
    from datetime import date

    from backcast.testing.shop import Shop

T = TypeVar("T")
Verb = str
GOALS: dict[Verb, frozenset[RunState]] = {
    "run": frozenset({RunState.ACCEPTED}),
    "publish": frozenset({RunState.PUBLISHED}),
    "undo": frozenset({RunState.UNDONE}),
    "cancel": frozenset({RunState.CANCELLED}),
}
_VERBS = {"stage": "run", "chunk": "run", "validate": "run"}
"""The command that passes a point, where it is not called like the point's first word."""
_IN_SCOPE_FROM = frozenset(RunState) - {RunState.PLANNED, RunState.APPROVED}
TOUCHES_THE_TABLE = frozenset(
    {
        "stage.after-open",
        "chunk.before-commit",
        "chunk.after-commit",
        "publish.before-commit",
        "publish.after-commit",
        "undo.before-commit",
        "undo.after-commit",
        "cancel.after-forget",
        "gc.after-forget",
        "restage.after-carry",
    }
)
"""Points right beside what a format does its own way."""


def verb_of(point: str) -> Verb:
    """The command that passes the point."""
    first = point.partition(".")[0]
    return _VERBS.get(first, first)


class DoomedWiring(Wiring):
    """Takes leases in the name of a process that is dead already, as a crash leaves them behind.

    It names no JVM: the one that everything here shares must not be ended by whoever takes over.
    """

    def holder(self) -> Holder:
        gone = _dead_process()
        me = super().holder()
        return me.model_copy(update={"pid": gone.pid, "started": gone.started, "jvm_pid": None, "jvm_started": None})


@cache
def _dead_process() -> processes.ProcessIdentity:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as process:
        identity = processes.identify(process.pid)
    assert identity is not None
    assert not processes.is_alive(identity)
    return identity


@dataclass
class Life:
    """One run on one shop. Each verb gets a control plane of its own, so nothing is remembered between two."""

    shop: Shop
    lake: Lake
    run_id: str = ""
    ghosts: list[str] = field(default_factory=list)
    """Runs that were planned by a command that died before it could say so."""

    witness: Witness | None = None
    meanwhile: Callable[[str], None] = nothing
    """What others do at every point."""

    keeps: bool = True
    """Whether the pipeline leaves live rows in scope where they are, so that any number of them may arrive."""

    def do(self, *verbs: Verb) -> None:
        """The commands, undisturbed."""
        for verb in verbs:
            with trace(self.meanwhile):
                self.perform(verb)

    def crash(self, verb: Verb, point: str, occurrence: int = 1) -> None:
        """The command until the point, where it dies. Fails when it never gets there.

        From here on live rows strike at the product's own boundaries as well.
        """
        if self.witness is not None:
            self.meanwhile = self.witness.strike
        with crash_at(point, occurrence, self.meanwhile) as reached, pytest.raises(SimulatedCrash, match=point):
            self.perform(verb, DoomedWiring)
        assert reached[-1] == point
        if verb == "plan":
            self.ghosts = [run.run_id for run in self.look(lambda control: control.list())]

    def perform(self, verb: Verb, wiring: type[Wiring] = Wiring) -> None:
        """The command in a process of its own: nothing is shared but the store, the table and Spark."""
        with closing(wiring(load_project(self.shop.root))) as world:
            self._perform(ControlPlane(world), verb)

    def repeat(self, verb: Verb, *more: Verb) -> None:
        """The command again, and what follows. It may find that everything was done before the crash, and say so."""
        try:
            self.do(verb)
        except StateConflict:
            assert self.state in GOALS.get(verb, frozenset()), f"{verb} is refused, yet the run is {self.state}"
        self.do(*more)

    def look(self, question: Callable[[ControlPlane], T]) -> T:
        with closing(Wiring(load_project(self.shop.root))) as world:
            return question(ControlPlane(world))

    def sell(self, day: date, number: int = 1) -> Row:
        """A sale that arrives as input, and as the live row that a stream makes of it."""
        row = live_row(day, number)
        self.lake.sell(sale_of(row))
        self.lake.append(row)
        return row

    @property
    def state(self) -> RunState:
        return self._run(self.run_id).state

    @contextmanager
    def witnessed(self, pauses: Iterator[float] | None = None) -> Iterator[Witness]:
        """With a live writer and a reader beside it."""
        with Witness(self.lake, self.accepts_live_rows_in_scope, pauses or slowing()) as self.witness:
            yield self.witness
        self.witness, self.meanwhile = None, nothing

    def accepts_live_rows_in_scope(self) -> bool:
        """From the moment the base is recorded; before it they are drift."""
        return self.keeps and bool(self.run_id) and self.state in _IN_SCOPE_FROM

    def check_ledger(self, *run_ids: str) -> None:
        """No chunk in limbo, no effect without outcome, no lease of a process that lives, the event chain whole, and
        evidence in which nothing contradicts anything.
        """
        for run_id in run_ids or (self.run_id,):
            with closing(Wiring(load_project(self.shop.root))) as world:
                store = world.store()
                run = store.runs.run(run_id)
                chunks = [chunk.state for chunk in store.runs.chunks(run_id)]
                wanted = (
                    {ChunkState.STAGED, ChunkState.PENDING} if run.state is RunState.CANCELLED else {ChunkState.STAGED}
                )
                assert set(chunks) <= wanted, f"{run_id} is {run.state} and its chunks are {chunks}"
                assert store.effects.open(run_id) == []
                lease = store.runs.holder(lease_name(run_id))
                assert lease is None or world.ended(lease.holder)
                assert store.runs.verify_events(run_id) is None
                assert verify(bundle(attest(store.runs, run_id))).run_id == run_id, "its evidence is sound"

    def check_refs(self) -> None:
        """Main and what the run declared: its stages, their bases, one fence for each publish and each undo."""
        stages = self.look(lambda control: stages_of(self.run_id, control.logs(self.run_id)))
        published = self.publications()
        released = bool(published) and published[-1].released_at is not None
        declared = {"main"}
        if self.state is not RunState.CANCELLED and not released:
            declared |= {name for each in stages for name in (each.branch, each.base_tag)}
            declared |= {publish_fence(self.run_id, each.generation) for each in published}
            declared |= {undo_fence(self.run_id, each.generation) for each in published if each.undone_at is not None}
        if not self.lake.has_tags:
            declared &= {"main", *(each.branch for each in stages)}
        assert self.lake.refs() == declared

    def publications(self) -> list[Publication]:
        return self.look(lambda control: control.world.reader().publications(self.run_id))

    def story(self) -> list[View]:
        """What main's history must tell, going by the ledger."""
        told: list[View] = ["old"]
        for each in self.publications():
            told += ["new"] if each.undone_at is None else ["new", "old"]
        return told

    def _run(self, run_id: str) -> Run:
        return self.look(lambda control: control.status(run_id).run)

    def _perform(self, control: ControlPlane, verb: Verb) -> None:
        match verb:
            case "plan":
                plan = control.plan(self.shop.request(*SCOPE))
                assert plan.recorded, plan.findings
                self.run_id = plan.run_id
            case "run":
                control.run(self.run_id)
            case "work":
                control.work(self.run_id, patience=0)
            case "publish":
                control.publish(self.run_id)
            case "undo":
                control.undo(self.run_id)
            case "cancel":
                control.cancel(self.run_id)
            case "gc":
                control.gc()
            case _:
                raise AssertionError(verb)
