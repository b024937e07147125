"""Every named point: the process dies there and forgets everything, the command is repeated, and nobody notices.

Beside it a live writer appends in and out of scope and a reader polls. Real kills are tried in test_real_kills.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from backcast.faults import POINTS
from backcast.model.states import RunState
from tests.crash.life import Life, verb_of

TO_PUBLISH = [name for name in POINTS if verb_of(name) in ("plan", "run", "publish")]
TO_UNDO = [name for name in POINTS if verb_of(name) == "undo"]
TO_CANCEL = [name for name in POINTS if verb_of(name) == "cancel"]
TO_GC = [name for name in POINTS if verb_of(name) == "gc"]
SECOND_CHUNK = [(name, 2) for name in ("chunk.after-claim", "chunk.after-commit", "chunk.after-record")]
DIED_BEFORE = {
    "cancel.after-intent": "chunk.after-write-intent",
    "cancel.before-forget": "chunk.after-commit",
    "cancel.after-forget": "run.after-start",
}
"""Where the run that is cancelled had died itself."""


def test_the_lives_below_cover_every_point() -> None:
    """A point that somebody adds is tried, or this fails."""
    assert sorted([*TO_PUBLISH, *TO_UNDO, *TO_CANCEL, *TO_GC]) == sorted(POINTS)


@pytest.mark.parametrize(("point", "occurrence"), [*((name, 1) for name in TO_PUBLISH), *SECOND_CHUNK], ids=str)
def test_a_crash_on_the_way_to_publish(new_life: Callable[..., Life], point: str, occurrence: int) -> None:
    """The table ends with the restated scope and every live row exactly once."""
    life = new_life()
    with life.witnessed() as witness:
        for verb in ("plan", "run", "publish"):
            if verb == verb_of(point):
                life.crash(verb, point, occurrence)
            life.repeat(verb)
    witness.verify(["old", "new"])
    assert life.state is RunState.PUBLISHED
    assert life.lake.rows() == witness.expected("new")
    life.check_ledger()
    life.check_refs()
    for ghost in life.ghosts:
        life.look(lambda control, name=ghost: control.cancel(name))
        life.check_ledger(ghost)
        life.check_refs()


@pytest.mark.parametrize("point", TO_UNDO)
def test_a_crash_on_the_way_to_undo(new_life: Callable[..., Life], point: str) -> None:
    """The scope is as before, and what the live writer wrote since is still there."""
    life = new_life()
    with life.witnessed() as witness:
        for verb in ("plan", "run", "publish"):
            life.do(verb)
        life.crash("undo", point)
        life.repeat("undo")
    witness.verify(["old", "new", "old"])
    assert life.state is RunState.UNDONE
    assert life.lake.rows() == witness.expected("old")
    life.check_ledger()
    life.check_refs()


@pytest.mark.parametrize(
    ("point", "before"),
    [*((name, "") for name in TO_CANCEL), *DIED_BEFORE.items()],
    ids=lambda each: each or "complete",
)
def test_a_crash_on_the_way_to_cancel(new_life: Callable[..., Life], point: str, before: str) -> None:
    """Nothing of the run stays behind, neither of a complete one nor of one that died while it worked."""
    life = new_life()
    with life.witnessed() as witness:
        life.do("plan")
        if before:
            life.crash("run", before)
        else:
            life.do("run")
        life.crash("cancel", point)
        life.repeat("cancel")
    witness.verify(["old"])
    assert life.state is RunState.CANCELLED
    assert life.lake.rows() == witness.expected("old")
    life.check_ledger()
    life.check_refs()


@pytest.mark.parametrize(
    ("point", "verbs"), [*((name, "publish undo") for name in TO_GC), ("gc.after-forget", "publish")]
)
def test_a_crash_on_the_way_through_gc(new_life: Callable[..., Life], point: str, verbs: str) -> None:
    """All refs of the run are gone, and no row with them."""
    life = new_life(undo_window="0s")
    with life.witnessed() as witness:
        for verb in ("plan", "run", *verbs.split()):
            life.do(verb)
        life.crash("gc", point)
        life.repeat("gc")
    witness.verify()
    assert life.lake.rows() == witness.expected("old" if "undo" in verbs else "new")
    assert life.publications()[-1].released_at is not None
    life.check_ledger()
    life.check_refs()


def test_a_life_that_dies_at_every_point_one_after_the_other(new_life: Callable[..., Life]) -> None:
    """No recovery relies on the one before it having gone well."""
    life = new_life(undo_window="0s")
    with life.witnessed() as witness:
        for verb in ("plan", "run", "publish", "undo", "gc"):
            for point in POINTS:
                if verb_of(point) == verb:
                    life.crash(verb, point)
            life.repeat(verb)
    witness.verify()
    assert life.lake.rows() == witness.expected("old")
    assert life.publications()[-1].released_at is not None
    life.check_ledger()
    life.check_refs()
