"""`backcast stream replay` before it stops anything: whom the stream would wait for is asked first. Without Spark."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest

from backcast.cli.commands.stream_replay import _rehearsed
from backcast.cli.options import NO_REASON
from backcast.cli.screen import Screen
from backcast.cli.working import Working
from backcast.control import ControlPlane
from backcast.model import full_replay as steps
from backcast.model.full_replay import CaughtUp, FullReplay
from backcast.model.need import ApprovalNeed
from backcast.model.report import Plan
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.testing.samples import sample_manifest
from tests.unit.test_approvals import REACH
from tests.unit.test_config_streams import _GOOD, _STREAM

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
