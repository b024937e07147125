"""`backcast stream recover` asks before each step: what a no changes, what it says, how one goes on. Without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from backcast.errors import NotApproved, Refused
from backcast.model.log import OffsetRange
from backcast.model.need import ApprovalNeed
from backcast.model.recovery import Recovery, Way
from backcast.model.request import Kind, Request
from backcast.model.restoring import LostWindows
from backcast.model.run import Publication, Run
from backcast.model.states import RunState
from backcast.testing.samples import sample_publication
from tests.unit.desk import Desk, desk
from tests.unit.test_approvals import REACH
from tests.unit.test_integrity import looked

__all__ = ["desk"]

LOOK = ["stream-recovery", "stream-integrity"]
CHECKPOINT = ["stream-recover"]
ARCHIVE = ["plan", "run", "publish"]
GONE = (OffsetRange(partition=0, start=30, end=45),)


class Stream:
    """Its checkpoint is damaged, and retention took records that it had not read: the child's answers about it."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.found = Recovery(
            stream="live",
            pipeline="daily",
            dataset="daily",
            table="lake.shop.daily",
            checkpoint="/srv/live",
            query_id="q",
            damages=("metadata: it is not JSON",),
            recoverable=None,
            stateful=False,
            position=None,
            proven={0: 30},
            batch=0,
            version="7",
            gone=GONE,
            lacking=GONE,
            by_offset=True,
            archived=True,
            way=Way.FRESH,
            why="the checkpoint is damaged",
        )
        desk.answers |= {
            "stream-recovery": lambda **_: self.found,
            "stream-integrity": lambda **_: looked(),
            "stream-recover": lambda **_: self._now(way=Way.START, damages=(), gone=(), position={0: 45}),
            "plan": lambda **_: desk.planned(),
            "run": self._run,
            "publish": self._publish,
        }

    def _now(self, **changed: Any) -> Recovery:
        self.found = self.found.model_copy(update=changed)
        return self.found

    def _run(self, run_id: str, **_: Any) -> Run:
        run = self._desk.control.world.store().runs.run(run_id)
        return run.model_copy(update={"state": RunState.ACCEPTED})

    def _publish(self, run_id: str, **_: Any) -> Publication:
        self._now(lacking=())
        return sample_publication(run_id)


@pytest.fixture
def stream(desk: Desk) -> Stream:
    return Stream(desk)


@pytest.mark.parametrize(
    ("says", "done", "told"),
    [
        ("n", [], ["nothing was changed, and stream live is not started: the same command asks again"]),
        ("", [], ["nothing was changed"]),
        (
            "yn",
            [*CHECKPOINT, "plan", "stream-recovery"],
            [
                "a fresh checkpoint is in place: /srv/live",
                "the table is as it was; the plan is kept: backcast run ",
                "stream live is not started: the same command goes on, and backcast stream start live goes on",
                " without offsets 0=30..45, which are not in lake.shop.daily",
            ],
        ),
        (
            "yyn",
            [*CHECKPOINT, *ARCHIVE, "stream-recovery", "stream-integrity"],
            ["stream live is not started; later: backcast stream start live"],
        ),
        ("yyy", [*CHECKPOINT, *ARCHIVE, "stream-recovery", "stream-integrity"], ["live  never started"]),
    ],
)
def test_no_to_a_question_changes_nothing_behind_it_and_says_how_to_go_on(
    desk: Desk, stream: Stream, says: str, done: list[str], told: list[str]
) -> None:
    code, screen = desk.type("recover", "live", says=says)
    assert (code, desk.asked, desk.starts) == (0, LOOK + done, int(says == "yyy"))
    for each in told:
        assert each in screen


def test_after_a_no_the_same_command_goes_on_with_that_question(desk: Desk, stream: Stream) -> None:
    desk.type("recover", "live", says="yn")
    _, screen = desk.type("recover", "live", says="yn")
    assert desk.asked == [*LOOK, *ARCHIVE, "stream-recovery", "stream-integrity"]
    assert "a fresh checkpoint is in place" not in screen
    desk.type("recover", "live", says="y")
    assert (desk.asked, desk.starts) == (LOOK, 1), "nothing is left but to start it"


def test_with_yes_nobody_is_asked(desk: Desk, stream: Stream) -> None:
    code, screen = desk.type("recover", "live", "--yes")
    assert (code, desk.starts) == (0, 1)
    assert desk.asked == [*LOOK, *CHECKPOINT, *ARCHIVE, "stream-recovery", "stream-integrity"]
    assert "[y/N]" not in screen


def test_what_ends_it_half_way_says_that_the_stream_is_not_started(desk: Desk, stream: Stream) -> None:
    """Also where people must agree to the run first, and on Ctrl-C."""
    need = ApprovalNeed(roles=("manager",), expires_seconds=3600, reach=REACH)
    desk.answers["plan"] = lambda **_: desk.planned(approval=need)
    code, screen = desk.type("recover", "live", "--yes")
    assert (code, desk.starts) == (NotApproved.exit_code, 0)
    assert "--as manager, then backcast run" in screen
    waits = "; stream live is not started: the same command goes on, and backcast stream start live goes on without"
    assert waits in screen

    def interrupted(**_: Any) -> None:
        raise KeyboardInterrupt

    desk.answers["plan"] = interrupted
    code, screen = desk.type("recover", "live", "--yes")
    assert (code, desk.starts) == (130, 0)
    assert waits[2:] in screen


@pytest.mark.parametrize(("says", "starts"), [("yyy", 1), ("yn", 0)])
def test_windows_that_lack_what_retention_took_are_restated_before_the_stream_starts(
    desk: Desk, stream: Stream, says: str, starts: int
) -> None:
    """Of a pipeline that replaces them: asked for like an append, and looked at again behind it."""
    stream.found = stream.found.model_copy(update={"by_offset": False, "by_window": True})
    request = Request(pipeline="daily", start="2026-01-02", end="2026-01-03", kind=Kind.REPAIR)
    desk.answers["stream-lost-windows"] = lambda **_: LostWindows(requests=(request,) if stream.found.lacking else ())
    code, screen = desk.type("recover", "live", says=says)
    restating = [*LOOK, *CHECKPOINT, "stream-lost-windows", "plan"]
    done = ["run", "publish", "stream-lost-windows", "stream-recovery", "stream-integrity"]
    unsaid = ["stream-lost-windows", "stream-recovery"]
    assert (code, desk.asked, desk.starts) == (0, [*restating, *(done if starts else unsaid)], starts)
    assert ("stream live is not started: the same command goes on" in screen) == (not starts)


def test_a_restated_window_that_lacks_its_records_all_the_same_ends_with_what_helps(desk: Desk, stream: Stream) -> None:
    """The same window would be planned for ever, and the stream never started."""
    stream.found = stream.found.model_copy(update={"by_offset": False, "by_window": True})
    request = Request(pipeline="daily", start="2026-01-02", end="2026-01-03", kind=Kind.REPAIR)
    lost = LostWindows(requests=(request,), unread=stream.found.lacking)
    desk.answers["stream-lost-windows"] = lambda **_: lost
    code, screen = desk.type("recover", "live", says="yy")
    assert (code, desk.starts) == (Refused.exit_code, 0)
    assert "no run has read offsets 0=30..45" in screen
    assert "set `to_end: true`, and repeat this command" in screen


def test_state_that_would_be_lost_is_told_before_anybody_is_asked(desk: Desk, stream: Stream) -> None:
    stream.found = stream.found.model_copy(update={"stateful": True, "gone": (), "lacking": ()})
    code, screen = desk.type("recover", "live", says="y")
    assert (code, desk.asked) == (Refused.exit_code, LOOK)
    assert "[y/N]" not in screen
    assert "backcast checkpoint restore live --from BACKUP; or backcast stream recover live --without-state" in screen
    assert "later: backcast plan daily --stream live --from DAY --to DAY" in screen
    assert desk.type("recover", "live", "--without-state", "--yes")[0] == 0


@pytest.mark.parametrize(("says", "starts"), [("yy", 1), ("yn", 0)])
def test_where_windows_are_replaced_the_stream_starts_and_who_plans_what_is_lacking_is_told(
    desk: Desk, stream: Stream, says: str, starts: int
) -> None:
    """It keeps state, or its topic has no archive: no run can give exactly these, and the stream does not wait."""
    stream.found = stream.found.model_copy(update={"by_offset": False})
    code, screen = desk.type("recover", "live", says=says)
    assert (code, desk.asked, desk.starts) == (Refused.exit_code, [*LOOK, *CHECKPOINT], starts)
    lacking = "offsets 0=30..45 are not in lake.shop.daily"
    assert f"{lacking}: backcast late live --plan plans the windows that lack them" in screen
