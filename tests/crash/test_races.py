"""Two at a time: on one run, on one publish, on overlapping scopes; and workers that outlive their lease.

The second one acts at a named point of the first, so every race happens each time. Two control planes with nothing in
common but the store and the table stand for two processes; the last test lets real ones race.
"""

from __future__ import annotations

import threading
from collections import Counter as Rows
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING

import pytest

from backcast.control import ControlPlane
from backcast.errors import BackcastError, Drifted, LeaseHeld, OutcomeUnknown, ScopeChanged, StateConflict
from backcast.model.pipeline import TableFormat
from backcast.model.stage import publish_fence, recorded_base, stage_of
from backcast.model.states import RunState
from backcast.model.table import StageWrite
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.testing.faults import SimulatedCrash, at_point, trace
from tests.crash.lake import NEW, OLD, OUTSIDE, SCOPE_DAYS, live_row
from tests.crash.life import DoomedWiring, Life
from tests.crash.process import RealLife, SparkProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STALE = 0
"""A token older than any that a claim gets."""
_PATIENCE = 120.0
LAST_MOMENTS = pytest.mark.parametrize("moment", ["after-intent", "before-commit"])
"""After the decision and before the table is read for the commit; after that and before the commit lands."""

NewLife = Callable[..., Life]
ON_BOTH = pytest.mark.parametrize("new_life", list(TableFormat), indirect=True)


def staged(new_life: NewLife, **settings: str) -> Life:
    life = new_life(**settings)
    life.do("plan")
    life.do("run")
    return life


def commits_with(life: Life, key: str, value: str) -> int:
    """How many versions of the table carry this property."""
    return life.lake.notes(key, value)


@pytest.mark.parametrize(("verb", "point"), [("run", "chunk.after-claim"), ("publish", "publish.before-commit")])
def test_a_second_process_is_told_that_the_run_is_being_worked_on(new_life: NewLife, verb: str, point: str) -> None:
    """One works, the other gets LeaseHeld (exit 4) and changes nothing."""
    life = new_life()
    life.do("plan")
    if verb == "publish":
        life.do("run")
    refused: list[BackcastError] = []

    def second() -> None:
        try:
            life.look(lambda control: getattr(control, verb)(life.run_id))
        except BackcastError as error:
            refused.append(error)

    with at_point(point, second):
        life.perform(verb)
    assert [(type(error), error.exit_code) for error in refused] == [(LeaseHeld, 4)]
    assert life.state is (RunState.ACCEPTED if verb == "run" else RunState.PUBLISHED)
    life.check_ledger()


@pytest.mark.parametrize("point", ["publish.after-intent", "publish.before-commit"])
def test_a_publisher_that_lost_its_lease_cannot_publish_a_second_time(new_life: NewLife, point: str) -> None:
    """Another took over and published meanwhile: the late commit is refused by the fence and the ledger."""
    life = staged(new_life)
    with at_point(point, lambda: life.perform("publish")), pytest.raises((LeaseHeld, StateConflict)):
        life.perform("publish", DoomedWiring)
    assert commits_with(life, "backcast.publish-id", publish_fence(life.run_id, 1)) == 1
    assert life.state is RunState.PUBLISHED
    assert life.lake.rows() == OUTSIDE + NEW
    life.check_ledger()
    life.check_refs()


@pytest.mark.parametrize("verb", ["publish", "undo"])
@ON_BOTH
def test_a_commit_that_lands_after_its_process_was_given_up_counts_once(new_life: NewLife, verb: str) -> None:
    """The successor looked, found nothing and is about to commit when the old commit lands: that one is it."""
    life = staged(new_life)
    if verb == "undo":
        life.do("publish")
    ready, go, landed = threading.Event(), threading.Event(), threading.Event()

    def stale() -> None:
        with suppress(SimulatedCrash):
            life.perform(verb, DoomedWiring)

    thread = threading.Thread(target=stale)

    def meet(name: str) -> None:
        if threading.current_thread() is thread:
            if name == f"{verb}.before-commit":
                ready.set()
                assert go.wait(_PATIENCE)
            if name == f"{verb}.after-commit":
                landed.set()
                raise SimulatedCrash(name)
        elif name == f"{verb}.before-commit":
            go.set()
            assert landed.wait(_PATIENCE)

    with trace(meet):
        thread.start()
        assert ready.wait(_PATIENCE)
        life.perform(verb)
        thread.join(_PATIENCE)
    assert life.state is (RunState.PUBLISHED if verb == "publish" else RunState.UNDONE)
    assert life.lake.rows() == OUTSIDE + (NEW if verb == "publish" else OLD)
    life.check_ledger()
    life.check_refs()


@pytest.mark.parametrize(
    ("new_life", "wiring"),
    [
        pytest.param(TableFormat.ICEBERG, Wiring, id="iceberg-alive"),
        pytest.param(TableFormat.ICEBERG, DoomedWiring, id="iceberg-gone"),
        pytest.param(TableFormat.DELTA, DoomedWiring, id="delta-gone"),
    ],
    indirect=["new_life"],
)
def test_after_an_unknown_outcome_nobody_looks_until_the_committing_process_is_gone(
    new_life: NewLife, wiring: type[Wiring]
) -> None:
    """The gateway broke and the JVM may still be committing: the lease stays until its holder ended, or it has."""
    life = staged(new_life)

    def lose_the_gateway() -> None:
        raise OutcomeUnknown("the commit may or may not have landed")

    with at_point("publish.before-commit", lose_the_gateway), pytest.raises(OutcomeUnknown):
        life.perform("publish", wiring)
    if wiring is Wiring:
        for verb in ("publish", "cancel"):
            with pytest.raises(LeaseHeld):
                life.perform(verb)
        assert life.state is RunState.PUBLISHING
    else:
        life.perform("publish")
        assert life.lake.rows() == OUTSIDE + NEW
        life.check_ledger()


@pytest.mark.parametrize("point", [None, "publish.before-intent", "publish.before-commit"])
def test_of_two_runs_on_one_scope_the_second_to_publish_is_refused(new_life: NewLife, point: str | None) -> None:
    """Also when the first one publishes at the last moment before the second one's commit."""
    life = new_life()
    rival = Life(life.shop, life.lake)
    for each in (life, rival):
        each.do("plan")
    for each in (life, rival):
        each.do("run")
    if point is None:
        rival.do("publish")
    with (
        at_point(point or "publish.before-intent", lambda: rival.perform("publish") if point else None),
        pytest.raises(ScopeChanged),
    ):
        life.perform("publish")
    assert (rival.state, life.state) == (RunState.PUBLISHED, RunState.ACCEPTED)
    assert life.lake.rows() == OUTSIDE + NEW
    life.do("cancel")
    rival.do("undo")
    assert life.lake.rows() == OUTSIDE + OLD
    life.check_ledger()
    rival.check_ledger()
    rival.check_refs()


@pytest.mark.parametrize(
    ("verb", "point"),
    [
        ("run", "chunk.after-record"),
        ("run", "run.before-reconcile"),
        ("run", "run.before-staged"),
        ("run", "validate.before-verdict"),
        ("publish", "publish.before-intent"),
        ("publish", "publish.before-commit"),
    ],
)
@ON_BOTH
def test_what_a_stale_worker_commits_late_is_not_published(new_life: NewLife, verb: str, point: str) -> None:
    """Its lease ended long ago and it writes other rows: either the chunk is staged again or the commit is ignored."""
    life = new_life()
    life.do("plan")
    if verb == "publish":
        life.do("run")
    with at_point(point, lambda: _write_wrong_rows(life)) as reached:
        life.perform(verb)
    assert point in reached
    life.repeat("publish")
    assert commits_with(life, "backcast.token", str(_STALE)) == 1
    assert life.lake.rows() == OUTSIDE + NEW
    life.check_ledger()
    life.check_refs()


@ON_BOTH
def test_a_worker_that_wakes_up_after_its_run_was_finished_by_another_changes_nothing(new_life: NewLife) -> None:
    """Its late commit lands on the stage, is refused by the ledger, and is not part of what is published."""
    life = new_life()
    life.do("plan")
    with at_point("chunk.before-commit", lambda: life.perform("run")), pytest.raises((LeaseHeld, StateConflict)):
        life.perform("run", DoomedWiring)
    assert life.state is RunState.ACCEPTED
    late = life.lake.stage_head(stage_of(life.run_id, None).branch)
    life.do("publish")
    assert late is not None
    assert late != life.look(lambda control: control.status(life.run_id)).verdict.staged  # type: ignore[union-attr]
    assert life.lake.rows() == OUTSIDE + NEW
    life.check_ledger()


@LAST_MOMENTS
@ON_BOTH
def test_a_live_row_in_scope_at_the_last_moment_stops_a_publish_that_must_not_keep_it(
    new_life: NewLife, moment: str
) -> None:
    """Policy fail: refused, the row stays, nothing was published; a new plan over the new rows goes through."""
    life = staged(new_life, live="fail")
    row = live_row(SCOPE_DAYS[0], 1)
    with at_point(f"publish.{moment}", lambda: life.lake.append(row)), pytest.raises(ScopeChanged):
        life.perform("publish")
    assert life.state is RunState.ACCEPTED
    assert life.lake.rows() == OUTSIDE + OLD + Rows([row])
    life.do("cancel")
    for verb in ("plan", "run", "publish"):
        life.do(verb)
    assert life.lake.rows() == OUTSIDE + NEW
    life.check_ledger()


@LAST_MOMENTS
@ON_BOTH
def test_a_live_row_in_scope_at_the_last_moment_stays_beside_the_restated_ones(new_life: NewLife, moment: str) -> None:
    """Policy keep: published with the row, and undone with the row."""
    life = staged(new_life, live="keep")
    row = live_row(SCOPE_DAYS[0], 1)
    with at_point(f"publish.{moment}", lambda: life.lake.append(row)):
        life.perform("publish")
    assert life.lake.rows() == OUTSIDE + NEW + Rows([row])
    another = live_row(SCOPE_DAYS[1], 2)
    with at_point(f"undo.{moment}", lambda: life.lake.append(another)):
        life.perform("undo")
    assert life.lake.rows() == OUTSIDE + OLD + Rows([row, another])
    life.check_ledger()


def test_gc_leaves_alone_what_another_process_works_on(new_life: NewLife) -> None:
    """A run that is published again while gc looks keeps everything its undo needs."""
    life = staged(new_life, undo_window="0s")
    for verb in ("publish", "undo"):
        life.do(verb)
    kept: list[str] = []

    class Slow(Wiring):
        """Takes so long to start Spark that the run goes on meanwhile."""

        def spark(self) -> SparkSession:
            if life.state is RunState.UNDONE:
                life.perform("publish")
            return super().spark()

    def gc(wiring: type[Wiring]) -> None:
        with closing(wiring(load_project(life.shop.root))) as world:
            report = ControlPlane(world).gc()
        assert not report.items
        kept.extend(report.kept)

    gc(Slow)
    with at_point("undo.before-commit", lambda: gc(Wiring)):
        life.perform("undo")
    assert len(kept) == 2
    assert life.lake.rows() == OUTSIDE + OLD
    life.check_ledger()
    life.check_refs()
    life.do("gc")
    assert life.publications()[-1].released_at is not None
    assert life.lake.rows() == OUTSIDE + OLD
    life.check_refs()


def test_two_real_processes_race_to_run_and_to_publish(real_life: RealLife) -> None:
    """This one and another: of each command one succeeds and the other is refused (exit 4); one publish lands."""
    with SparkProcess(real_life.shop.root) as other:
        other.call("doctor")
        real_life.do("plan")
        for verb in ("run", "publish"):
            other.send(verb, **real_life.arguments(verb))
            codes = [_exit_code(partial(real_life.perform, verb)), _exit_code(other.answer)]
            assert sorted(codes) == [0, 4]
    assert commits_with(real_life, "backcast.publish-id", publish_fence(real_life.run_id, 1)) == 1
    assert real_life.state is RunState.PUBLISHED
    assert real_life.lake.rows() == OUTSIDE + NEW
    real_life.check_ledger()
    real_life.check_refs()


def _exit_code(act: Callable[[], object]) -> int:
    try:
        act()
    except BackcastError as error:
        return error.exit_code
    return 0


def _write_wrong_rows(life: Life) -> None:
    """What a worker would commit whose claim is older than every other and whose code was wrong."""
    with closing(Wiring(load_project(life.shop.root))) as world:
        manifest = world.reader().manifest(life.run_id)
        base = recorded_base(world.reader().events(life.run_id))
        chunk = manifest.chunks[0]
        rows = world.spark().sql(
            f"SELECT DATE'{chunk.id}' AS day, 'WRONG' AS shop, 1L AS sales, CAST(666 AS DECIMAL(30,2)) AS revenue"
        )
        write = StageWrite((chunk.id,), _STALE, chunk.predicate, exact=False)
        world.target("revenue").write(stage_of(life.run_id, base), write, rows)


@ON_BOTH
def test_a_change_of_schema_at_the_last_moment_stops_a_publish(new_life: NewLife) -> None:
    """The commit loses the race against it; to try again would put files of the old schema into the new table."""
    life = staged(new_life)
    change = f"ALTER TABLE {life.shop.revenue} ADD COLUMNS (extra STRING)"
    with (
        at_point("publish.before-commit", lambda: life.shop.spark.sql(change)),
        pytest.raises(Drifted, match="columns"),
    ):
        life.perform("publish")
    assert life.state is RunState.ACCEPTED
    assert life.publications() == []
    assert {row[:4] for row in life.lake.rows()} == set(OUTSIDE + OLD)
