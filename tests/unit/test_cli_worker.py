"""`backcast worker` without a run: what it takes part in, what it leaves to others, when it ends."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from backcast.cli.dispatch import dispatch
from backcast.model.states import RunState
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.testing.samples import sample_manifest
from tests.unit.test_cli_child import Scripted, project, scripted

__all__ = ["project", "scripted"]


@pytest.fixture
def run_id(project: Path) -> str:
    """A run that is being computed, as far as the store knows."""
    with closing(Wiring(load_project(project))) as world:
        runs = world.store().runs
        run = runs.create(sample_manifest())
        for state in (RunState.APPROVED, RunState.RUNNING):
            run = runs.transition(run, state)
    return run.run_id


def serve(project: Path, *options: str) -> int:
    return dispatch(["worker", "--idle", "0.5", "--project", str(project), *options])


def test_it_ends_when_there_is_nothing_to_do(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve(project, "--json") == 0
    assert json.loads(capsys.readouterr().out) == []


def test_a_run_that_this_machine_may_not_work_on_is_left_to_others(
    project: Path,
    scripted: Scripted,
    run_id: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is asked once, and not again and again."""
    scripted("say(type='error', body=dict(code='run.drifted', message='other code', hint='', exit_code=3))")
    assert serve(project) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert said.count(f"{run_id} is left to others: other code") == 1


def test_it_ends_with_its_spark(
    project: Path,
    scripted: Scripted,
    run_id: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scripted("os.kill(os.getpid(), signal.SIGKILL)")
    assert serve(project) == 5
    assert f"backcast worker {run_id}" in capsys.readouterr().err
