"""`backcast stream backfill` that does not come to its end: given up, declined, or its run is not there."""

from __future__ import annotations

import pytest

from backcast.errors import InvalidRequest, LeaseHeld, Refused, StateConflict
from backcast.model import stream_backfill as steps
from backcast.model.live import stream_lease
from backcast.model.states import RunState
from backcast.model.stream_backfill import StreamBackfill, Way, unfinished
from backcast.run.lease import acquire
from backcast.testing.faults import at_point
from tests.unit.desk import Desk, desk

__all__ = ["desk"]

WINDOW = ("--from", "2025-01-01", "--to", "2025-01-04")
TYPED = ("backfill", "live", *WINDOW, "--pause")
BEGUN = StreamBackfill(
    stream="live",
    pipeline="daily",
    start="2025-01-01",
    end="2025-01-04",
    way=Way.PAUSE,
    why="asked for with --pause",
    resume=True,
)
STEPS = (steps.STOPPED, steps.BACKED_UP, steps.PLANNED, steps.PUBLISHED, steps.VERIFIED, steps.RESUMED)


def interrupted(desk: Desk, done: int, state: RunState = RunState.PLANNED, *, resume: bool = True) -> str:
    """A command has died behind so many steps. The run that it planned."""
    store, run_id = desk.control.world.store().streams, desk.run(state).run_id
    store.step("live", steps.BEGUN, **BEGUN.model_copy(update={"resume": resume}).as_json())
    for name in STEPS[:done]:
        store.step("live", name, **({"run_id": run_id} if name == steps.PLANNED else {}))
    return run_id


def left(desk: Desk) -> StreamBackfill | None:
    return unfinished(desk.control.world.store().streams.steps("live"))


def test_a_stream_that_others_run_cannot_be_stopped_from_here_and_the_command_says_so(desk: Desk) -> None:
    config = desk.root / "backcast.yaml"
    config.write_text(config.read_text().replace("  live:\n", "  live:\n    external: true\n"))
    code, screen = desk.type("stop", "live")
    assert code == InvalidRequest.exit_code
    assert "stream live is run by somebody else" in screen
    assert "stop it where it runs" in screen


def test_a_start_that_comes_while_a_backfill_stops_the_stream_is_stopped_too_or_refused(desk: Desk) -> None:
    control, world = desk.control, desk.control.world
    store, leases = world.store().streams, world.store().leases
    control.stream_backfill("live", *WINDOW[1::2], pause=True)
    started = leases.acquire(stream_lease("live"), world.holder(), 300)
    desk.monkeypatch.setattr("backcast.verbs.stream_backfilling.LEASE_SECONDS", 0)
    desk.monkeypatch.setattr(control, "stream_stop", lambda _: None)
    with pytest.raises(LeaseHeld):
        control.stream_backfill_stop("live")
    assert left(desk) is not None, "the same command goes on"
    assert [each.name for each in store.steps("live")] == [steps.BEGUN], "what runs is not on record as stopped"
    desk.monkeypatch.setattr(control, "stream_stop", lambda _: leases.release(started))

    def start() -> None:
        with pytest.raises(LeaseHeld, match="runs stream live right now"):
            control.refuse_start("live")

    with at_point("backfill.before-stopped", start):
        found = control.stream_backfill_stop("live")
    assert found is not None
    assert (found.steps, found.resume) == ((steps.STOPPED,), True), "it ran when it was stopped"
    with pytest.raises(Refused, match="has stopped stream live, and is not over"):
        control.refuse_start("live")


@pytest.mark.parametrize("days", [("2025-01-04", "2025-01-01"), ("2025-01-01", "2025-13-01"), ("monday", "2025-01-02")])
def test_what_is_no_window_stops_no_stream_and_is_not_on_record(desk: Desk, days: tuple[str, str]) -> None:
    code, screen = desk.type("backfill", "live", "--from", days[0], "--to", days[1], "--pause", "--yes")
    assert (code, left(desk)) == (2, None), screen
    assert "stays stopped" not in screen


@pytest.mark.parametrize("done", range(len(STEPS) + 1))
def test_one_that_is_given_up_behind_any_step_is_over_and_its_stream_runs_again(desk: Desk, done: int) -> None:
    published = done > STEPS.index(steps.PUBLISHED)
    run_id = interrupted(desk, done, RunState.PUBLISHED if published else RunState.PLANNED)
    code, screen = desk.type(*TYPED, "--give-up")
    assert (code, desk.starts, desk.asked, left(desk)) == (0, 1, [], None)
    if published:
        assert f"given up; run {run_id} stays published: backcast undo {run_id} takes its rows back" in screen
    elif done > STEPS.index(steps.PLANNED):
        drops = f"and the table as it was: backcast cancel {run_id} drops it"
        assert f"given up; run {run_id} stays planned, {drops}" in screen
    else:
        assert "given up; nothing was planned, and the table is as it was" in screen


def test_giving_up_starts_no_stream_that_runs_or_that_it_did_not_stop(desk: Desk) -> None:
    interrupted(desk, 2, resume=False)
    assert desk.type(*TYPED, "--give-up")[0] == 0
    world = desk.control.world
    interrupted(desk, 2)
    with acquire(world.store().leases, stream_lease("live"), world.holder(), world.clock, world.ended):
        assert desk.type(*TYPED, "--give-up")[0] == 0
    assert (desk.starts, left(desk)) == (0, None)


def test_only_the_one_that_is_not_over_can_be_given_up(desk: Desk) -> None:
    code, screen = desk.type(*TYPED, "--give-up")
    assert (code, desk.starts, left(desk)) == (StateConflict.exit_code, 0, None)
    assert "no backfill of stream live is under way: there is nothing to give up" in screen
    interrupted(desk, 2)
    code, screen = desk.type("backfill", "live", "--from", "2025-01-01", "--to", "2025-01-09", "--give-up")
    assert (code, desk.starts, left(desk) is None) == (StateConflict.exit_code, 0, False)
    assert "--from 2025-01-01 --to 2025-01-04 goes on with it, and with --give-up ends it" in screen


def test_one_whose_stream_does_not_start_is_not_given_up_yet(desk: Desk) -> None:
    interrupted(desk, 2)

    def refused(*_: object, **__: object) -> None:
        raise StateConflict("the broker is away", hint="start it")

    desk.monkeypatch.setattr("backcast.cli.stream_steps.started_in_background", refused)
    code, screen = desk.type(*TYPED, "--give-up")
    assert code == StateConflict.exit_code
    assert "start it; the same command goes on; backcast stream status live says whether it runs" in screen
    assert left(desk) is not None


def test_no_to_the_question_leaves_the_stream_stopped_and_says_so(desk: Desk) -> None:
    interrupted(desk, 2)
    desk.answers["plan"] = lambda **_: desk.planned()
    for asked in (["plan"], []):
        code, screen = desk.type(*TYPED, says="n")
        assert (code, desk.asked, desk.starts) == (0, asked, 0)
        assert screen.count("[y/N]") == 1
        assert (
            "the table is as it was; stream live stays stopped meanwhile; the same command goes on, and with --give-up"
            " it starts the stream again and ends here"
        ) in screen
    found = left(desk)
    assert found is not None
    assert found.steps == STEPS[:3]


def test_a_run_that_was_cancelled_is_planned_anew(desk: Desk) -> None:
    cancelled = interrupted(desk, 3, RunState.CANCELLED)
    desk.answers["plan"] = lambda **_: desk.planned()
    assert desk.type(*TYPED, says="n")[0] == 0
    found = left(desk)
    assert found is not None
    assert (found.steps, found.run_id == cancelled) == (STEPS[:3], False)
    assert desk.type(*TYPED, says="n")[0] == 0
    assert desk.asked == [], "that one stands"


def test_a_run_that_was_undone_after_it_was_published_is_not_published_again(desk: Desk) -> None:
    run_id = interrupted(desk, 4, RunState.UNDONE)
    code, screen = desk.type(*TYPED, "--yes")
    assert (code, desk.starts, desk.asked) == (StateConflict.exit_code, 0, [])
    assert f"run {run_id} of this backfill was published, and is undone now" in screen
    again = "backcast stream backfill live --from 2025-01-01 --to 2025-01-04 --give-up starts it again and ends here"
    assert f"stream live stays stopped meanwhile; {again}; after backcast publish {run_id} the same" in screen
    code, screen = desk.type(*TYPED, "--give-up")
    assert (code, desk.starts, left(desk)) == (0, 1, None)
    assert f"given up; run {run_id} stays undone: backcast status {run_id}" in screen
