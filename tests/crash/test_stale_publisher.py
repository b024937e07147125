"""A publisher sleeps before its commit while others publish and go on: awake again, it changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from backcast.errors import Drifted, LeaseHeld, StateConflict
from backcast.model.pipeline import TableFormat
from backcast.model.states import RunState
from backcast.testing.faults import SimulatedCrash, at_point, crash_at
from tests.crash.lake import NEW, OLD, OUTSIDE
from tests.crash.life import DoomedWiring, Life

ON_BOTH = pytest.mark.parametrize("new_life", list(TableFormat), indirect=True)
NewLife = Callable[..., Life]


def _asleep_in_publish(new_life: NewLife, *verbs: str) -> Life:
    life = new_life(undo_window="0s")
    life.do("plan")
    life.do("run")

    def others() -> None:
        for verb in verbs:
            life.perform(verb)

    with at_point("publish.before-commit", others), pytest.raises((Drifted, LeaseHeld, StateConflict)):
        life.perform("publish", DoomedWiring)
    return life


@ON_BOTH
def test_a_publisher_that_wakes_up_after_the_undo_leaves_the_ledger_alone(new_life: NewLife) -> None:
    life = _asleep_in_publish(new_life, "publish", "undo")
    assert life.lake.rows() == OUTSIDE + OLD
    assert life.state is RunState.UNDONE
    life.check_ledger()
    life.check_refs()
    assert [each.undone_at is not None for each in life.publications()] == [True]


@ON_BOTH
def test_after_it_a_second_publish_that_dies_is_not_taken_for_done(new_life: NewLife) -> None:
    life = _asleep_in_publish(new_life, "publish", "undo")
    with crash_at("publish.after-intent"), pytest.raises(SimulatedCrash):
        life.perform("publish", DoomedWiring)
    life.perform("publish")
    assert life.state is RunState.PUBLISHED
    assert life.lake.rows() == OUTSIDE + NEW


@ON_BOTH
def test_a_publisher_that_wakes_up_after_gc_leaves_the_ledger_alone(new_life: NewLife) -> None:
    life = _asleep_in_publish(new_life, "publish", "gc")
    assert life.lake.rows() == OUTSIDE + NEW
    assert life.state is RunState.PUBLISHED
    assert life.publications()[-1].released_at is not None, "an undo is believed to be possible"
