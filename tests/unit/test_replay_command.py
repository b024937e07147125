"""`backcast stream replay` before it stops anything: it comes near to the stream or says that it does not, and whom the
stream would wait for is asked first. Without Spark.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backcast.cli.commands.stream_replay import _PATIENCE, _catch_up, _rehearsed
from backcast.cli.options import NO_REASON
from backcast.cli.screen import Screen
from backcast.cli.working import Working
from backcast.control import ControlPlane
from backcast.errors import Failed, InvalidRequest
from backcast.model import full_replay as steps
from backcast.model.full_replay import CaughtUp, FullReplay
from backcast.model.need import ApprovalNeed
from backcast.model.report import Plan
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.testing.samples import sample_manifest
from tests.unit.desk import Desk, desk
from tests.unit.test_approvals import REACH
from tests.unit.test_config_streams import _GOOD, _STREAM

__all__ = ["desk"]

FOUND = CaughtUp(batch=3, ends={0: 7}, behind=0, first_day="2026-01-01", end_day="2026-01-04")
BEGUN = FullReplay(stream="live", pipeline="daily", start=None, query_id="q", resume=True)


class Planner:
    """Plans as the Spark child would under a policy; nothing else may be asked of it."""

    def __init__(self, roles: tuple[str, ...]) -> None:
        self.screen = Screen(json=False, no_color=True, verbose=False)
        need = ApprovalNeed(roles=roles, expires_seconds=3600, reach=REACH) if roles else None
        self._manifest = sample_manifest().model_copy(update={"approval": need})

    def call(self, verb: str, _waiting: str, **arguments: Any) -> Any:
        assert (verb, arguments["record"]) == ("plan", False), "nothing is on record yet"
        made = self._manifest
        plan = Plan(manifest=made, sha256=made.sha256(), run_id=made.run_id(), recorded=False, refused=False)
        return plan.as_json()


@pytest.fixture
def control(tmp_path: Path) -> Iterator[ControlPlane]:
    (tmp_path / "backcast.yaml").write_text(_GOOD + _STREAM)
    found = ControlPlane(Wiring(load_project(tmp_path, environ={})))
    with closing(found.world):
        found.world.store().streams.step("live", steps.BEGUN, **BEGUN.as_json())
        yield found


@pytest.mark.parametrize(
    ("roles", "answer", "yes", "goes_on"),
    [((), "", False, True), (("manager",), "y\n", False, True), (("manager",), "\n", False, False),
     (("manager",), "", True, True)],
)  # fmt: skip
def test_a_stream_that_would_wait_for_people_is_stopped_only_when_that_is_meant(
    control: ControlPlane,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    roles: tuple[str, ...],
    answer: str,
    yes: bool,
    goes_on: bool,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    work = cast("Working", Planner(roles))
    assert _rehearsed(control, work, BEGUN, NO_REASON, FOUND, yes=yes) is goes_on
    told = capsys.readouterr().err
    assert ("policy asks for manager: the stream stands from its stop" in told) is bool(roles)


class Slices:
    """Made up: so far behind the stream is each of them."""

    def __init__(self, behind: Iterable[int]) -> None:
        self.screen = Screen(json=True)
        self.read = 0
        self._behind = iter(behind)

    def call(self, verb: str, _waiting: str, **arguments: Any) -> Any:
        assert (verb, arguments["name"], arguments["last"]) == ("stream-replay-slice", "live", False)
        self.read += 1
        return FOUND.model_copy(update={"behind": next(self._behind)}).as_json()


def test_slices_end_with_the_first_that_is_near_enough() -> None:
    slices = Slices([9000, 3000, 3100, 1000, 500])
    assert _catch_up(cast("Working", slices), "live", 1000).behind == 1000
    assert slices.read == 4


@given(behind=st.lists(st.integers(0, 10**9), min_size=1, max_size=30), within=st.integers(0, 10**9))
def test_slices_never_go_on_for_ever(behind: list[int], within: int) -> None:
    """However the stream writes: in vain they are so many times only."""
    slices = Slices([*behind * 2, *behind[:1] * _PATIENCE])
    try:
        assert _catch_up(cast("Working", slices), "live", within).behind <= within
    except Failed:
        assert min(behind[: slices.read]) > within
    assert slices.read <= len(behind) + _PATIENCE


def test_a_record_less_each_time_is_no_nearer() -> None:
    slices = Slices(itertools.count(1_000_000, -1))
    with pytest.raises(Failed, match="comes no nearer"):
        _catch_up(cast("Working", slices), "live", 1000)
    assert slices.read == 1 + _PATIENCE


def test_a_replay_that_comes_no_nearer_says_how_far_it_is_and_leaves_the_stream_alone(desk: Desk) -> None:
    store = desk.control.world.store().streams
    store.step("live", steps.BEGUN, **BEGUN.as_json())
    behind = iter([9000, 5000, 5200, 4990, 5300, 6000, 5100])
    desk.answers["stream-replay-slice"] = lambda **_: FOUND.model_copy(update={"behind": next(behind)})
    code, screen = desk.type("replay", "live", "--yes")
    assert (code, len(desk.asked), desk.starts) == (Failed.exit_code, 7, 0)
    assert "batch 3: 9,000 records behind the stream" in screen
    assert (
        "comes no nearer to stream live: 5,000 records behind, and after 5 more slices 5,100; nothing was stopped"
    ) in screen
    assert "or accept a longer stop: --within 5100; the same command goes on, and with --give-up it forgets" in screen
    assert [each.name for each in store.steps("live")] == [steps.BEGUN]


def test_a_replay_cannot_be_ahead_of_its_stream(desk: Desk) -> None:
    code, screen = desk.type("replay", "live", "--within=-1", "--yes")
    assert (code, desk.asked) == (InvalidRequest.exit_code, [])
    assert "--within -1" in screen
