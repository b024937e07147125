"""The table of states, and a store that is walked at random through it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from backcast.errors import StateConflict
from backcast.model.run import Lease, Run, lease_name
from backcast.model.states import OPEN_STATES, TRANSITIONS, RunState
from backcast.store import open_store
from backcast.testing.samples import sample_holder, sample_manifest

STATES = st.sampled_from(list(RunState))


def test_every_state_has_a_row_and_can_be_reached() -> None:
    """A state without a way in or without a row would be a trap for a run."""
    assert set(TRANSITIONS) == set(RunState)
    assert set().union(*TRANSITIONS.values()) | {RunState.PLANNED} == set(RunState)


def test_an_open_run_can_always_come_to_rest() -> None:
    """Whatever happened, some path leads to a state in which nothing more can change by itself."""
    resting = set(RunState) - OPEN_STATES
    while grown := {state for state in RunState if TRANSITIONS[state] & resting} - resting:
        resting |= grown
    assert resting == set(RunState)


class RunWalk(RuleBasedStateMachine):
    """One run, walked at random by two drivers that take the lease from each other, against what the table says."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = open_store(f"sqlite:///{Path(self.folder.name) / 'store.db'}")
        self.run = self.store.runs.create(sample_manifest(days=1))
        self.seen: list[Run] = [self.run]
        self.stale: list[Lease] = []
        self.lease: Lease | None = None

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def _try(self, run: Run, to: RunState, token: int | None, *, fenced_out: bool) -> None:
        """Move if the table, the revision and the lease all agree; be refused otherwise."""
        if run == self.run and to in TRANSITIONS[run.state] and not fenced_out:
            moved = self.store.runs.transition(run, to, token=token, detail=f"to {to}")
            assert (moved.state, moved.revision) == (to, run.revision + 1)
            self.run = moved
            self.seen.append(moved)
        else:
            with pytest.raises(StateConflict):
                self.store.runs.transition(run, to, token=token)

    @initialize()
    def begin(self) -> None:
        self.lease = self.store.leases.acquire(lease_name(self.run.run_id), sample_holder(), 600)

    @rule(data=st.data())
    def follow_the_table(self, data: st.DataObject) -> None:
        following = sorted(TRANSITIONS[self.run.state])
        if following:
            self._try(self.run, data.draw(st.sampled_from(following)), None, fenced_out=False)

    @rule(to=STATES)
    def ask_for_any_state(self, to: RunState) -> None:
        token = None if self.lease is None else self.lease.token
        self._try(self.run, to, token, fenced_out=False)

    @rule(to=STATES, data=st.data())
    def decide_on_an_old_reading(self, to: RunState, data: st.DataObject) -> None:
        self._try(data.draw(st.sampled_from(self.seen)), to, None, fenced_out=False)

    @rule(to=STATES, data=st.data())
    @precondition(lambda self: self.stale)
    def work_under_a_lost_lease(self, to: RunState, data: st.DataObject) -> None:
        lost = data.draw(st.sampled_from(self.stale))
        self._try(self.run, to, lost.token, fenced_out=True)

    @rule()
    @precondition(lambda self: self.lease is not None)
    def lose_the_lease(self) -> None:
        assert self.lease is not None
        self.stale.append(self.lease)
        self.lease = self.store.leases.take_over(self.lease, sample_holder("successor"), 600)

    @invariant()
    def the_store_holds_exactly_what_was_allowed(self) -> None:
        assert self.store.runs.run(self.run.run_id) == self.run
        names = [event.name for event in self.store.runs.events(self.run.run_id)]
        assert names == [f"state.{run.state.value}" for run in self.seen]
        assert self.store.verify_events(self.run.run_id) is None


TestRunWalk = RunWalk.TestCase
TestRunWalk.settings = settings(
    max_examples=25,
    stateful_step_count=25,
    deadline=None,
    # Each example makes a real store on disk.
    suppress_health_check=[HealthCheck.too_slow],
)
