"""Every named point: the process dies there and forgets everything, the command is repeated, and nobody notices.

Beside it a live writer appends in and out of scope and a reader polls. Real kills are tried in test_real_kills.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any

import pytest

from backcast.faults import POINTS
from backcast.model.pipeline import TableFormat
from backcast.model.states import RunState
from tests.crash.lake import NEW, OLD, OUTSIDE, SCOPE_DAYS
from tests.crash.life import TOUCHES_THE_TABLE, Life, verb_of
from tests.crash.witness import View

TO_PLAN, TO_RUN, TO_PUBLISH, TO_UNDO, TO_GC, TO_CANCEL, TO_RESTAGE = (
    [name for name in POINTS if verb_of(name) == verb]
    for verb in ("plan", "run", "publish", "undo", "gc", "cancel", "restage")
)
SECOND_CHUNK = [(name, 2) for name in ("chunk.after-claim", "chunk.after-commit", "chunk.after-record")]
DIED_BEFORE = {
    "cancel.after-intent": "chunk.after-write-intent",
    "cancel.before-forget": "chunk.after-commit",
    "cancel.after-forget": "run.after-start",
}
"""Where the run that is cancelled had died itself."""

Crashes = tuple[tuple[str, int], ...]
"""Points, each with the pass at which the process dies there."""


def _zipped(formats_own: bool) -> list[Crashes]:
    """The n-th point of every command in the n-th life; `run` has so many that it dies twice in a life."""
    plan, run, publish, undo, gc = (
        [(name, 1) for name in names if not formats_own or name in TOUCHES_THE_TABLE]
        for names in (TO_PLAN, TO_RUN, TO_PUBLISH, TO_UNDO, TO_GC)
    )
    run += [] if formats_own else SECOND_CHUNK
    half = -(-len(run) // 2)
    rows = zip_longest(plan, run[:half], run[half:], publish, undo, gc)
    return [tuple(each for each in row if each is not None) for row in rows]


LIVES = {TableFormat.ICEBERG: _zipped(False), TableFormat.DELTA: _zipped(True)}


def _lives() -> Iterator[Any]:
    for table_format, lives in LIVES.items():
        for crashes in lives:
            yield pytest.param(table_format, crashes, id=f"{table_format}-" + "-".join(name for name, _ in crashes))


def _verbs(crashes: Crashes) -> list[str]:
    """The commands up to the last that dies, and up to a publish at least."""
    verbs = ["plan", "run", "publish", "undo", "gc"]
    return verbs[: max(3, *(verbs.index(verb_of(point)) + 1 for point, _ in crashes))]


def on_formats(cases: Iterable[tuple[str, object]]) -> pytest.MarkDecorator:
    """The cases, each a point and one more argument, on Iceberg, and those that touch the table on Delta too.

    All others are tried alone on one format, in a row on both.
    """
    formats = [
        pytest.param(each, point, more, id=f"{each}-{point}-{more}")
        for point, more in cases
        for each in TableFormat
        if each is TableFormat.ICEBERG or point in TOUCHES_THE_TABLE
    ]
    return pytest.mark.parametrize(("new_life", "point", "more"), formats, indirect=["new_life"])


ONCE_MORE = [
    ("stage.after-open", 1),
    ("chunk.after-commit", 1),
    ("validate.after-verdict", 1),
    ("publish.before-intent", 2),
]
"""Points of other verbs, as a publish passes them that stages again."""


def test_the_lives_below_cover_every_point() -> None:
    """A point that somebody adds is tried, or this fails."""
    tried = {name for lives in LIVES.values() for crashes in lives for name, _ in crashes}
    elsewhere = {name for name in POINTS if verb_of(name) == "replay"}
    """In tests/e2e/test_stream_replay.py."""
    assert tried | {*TO_CANCEL, *TO_RESTAGE} | elsewhere == set(POINTS)


@pytest.mark.parametrize(("new_life", "crashes"), [*_lives()], indirect=["new_life"])
def test_a_crash_on_the_way_to_each_command(new_life: Callable[..., Life], crashes: Crashes) -> None:
    """A death or two in each command: after each the table holds the scope as it should be, and every live row once."""
    life = new_life(undo_window="0s")
    told: list[View] = ["old"]
    with life.witnessed() as witness:
        for verb in _verbs(crashes):
            for point, occurrence in crashes:
                if verb_of(point) == verb:
                    life.crash(verb, point, occurrence)
            life.repeat(verb)
            told += {"publish": ["new"], "undo": ["old"]}.get(verb, [])
    witness.verify(None if verb == "gc" else told)
    assert life.state is (RunState.PUBLISHED if told[-1] == "new" else RunState.UNDONE)
    assert life.lake.rows() == witness.expected(told[-1])
    assert (life.publications()[-1].released_at is not None) == (verb == "gc")
    life.check_ledger()
    life.check_refs()
    for ghost in life.ghosts:
        life.look(lambda control, name=ghost: control.cancel(name))
        life.check_ledger(ghost)
        life.check_refs()


@on_formats([*((name, "") for name in TO_CANCEL), *DIED_BEFORE.items()])
def test_a_crash_on_the_way_to_cancel(new_life: Callable[..., Life], point: str, more: str) -> None:
    """Nothing of the run stays behind, neither of a complete one nor of one that died while it worked."""
    life = new_life()
    with life.witnessed() as witness:
        life.do("plan")
        if more:
            life.crash("run", more)
        else:
            life.do("run")
        life.crash("cancel", point)
        life.repeat("cancel")
    witness.verify(["old"])
    assert life.state is RunState.CANCELLED
    assert life.lake.rows() == witness.expected("old")
    life.check_ledger()
    life.check_refs()


@pytest.mark.parametrize("new_life", list(TableFormat), indirect=True)
def test_a_crash_in_gc_after_a_publish(new_life: Callable[..., Life]) -> None:
    """All refs of the run are gone, and no row with them."""
    life = new_life(undo_window="0s")
    with life.witnessed() as witness:
        for verb in ("plan", "run", "publish"):
            life.do(verb)
        life.crash("gc", "gc.after-forget")
        life.repeat("gc")
    witness.verify()
    assert life.lake.rows() == witness.expected("new")
    assert life.publications()[-1].released_at is not None
    life.check_ledger()
    life.check_refs()


@on_formats([*((name, 1) for name in TO_RESTAGE), *ONCE_MORE])
def test_a_crash_while_a_live_row_is_restaged(new_life: Callable[..., Life], point: str, more: int) -> None:
    """The live row is in the result once, and the chunk that it did not reach was computed once."""
    life = new_life(live="restage")
    for verb in ("plan", "run"):
        life.do(verb)
    live = life.sell(SCOPE_DAYS[0])
    life.crash("publish", point, more)
    if life.state is RunState.RUNNING and point.startswith("restage."):
        life.repeat("run")
    life.repeat("publish")
    assert life.state is RunState.PUBLISHED
    assert life.lake.rows() == OUTSIDE + NEW + Counter([live])
    assert life.look(lambda control: control.world.reader().chunks(life.run_id))[1].attempts == 1
    assert life.publications()[-1].amendment == 1
    life.check_ledger()
    life.check_refs()
    life.do("undo")
    assert life.lake.rows() == OUTSIDE + OLD + Counter([live])


@on_formats([(name, "") for name in ("restage.after-amend", "restage.after-carry", "restage.after-reset")])
def test_a_run_that_died_while_it_was_restaged_can_be_cancelled(
    new_life: Callable[..., Life], point: str, more: str
) -> None:
    assert not more
    life = new_life(live="restage")
    for verb in ("plan", "run"):
        life.do(verb)
    live = life.sell(SCOPE_DAYS[0])
    life.crash("publish", point)
    life.do("cancel")
    assert life.lake.rows() == OUTSIDE + OLD + Counter([live])
    life.check_ledger()
    life.check_refs()


@pytest.mark.parametrize("new_life", list(TableFormat), indirect=True)
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
