"""Who works on a run, as status tells it: a detached process that still starts Spark, and workers without a driver."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

import pytest

from backcast.cli import detached
from backcast.cli.dispatch import dispatch
from backcast.errors import LeaseHeld
from backcast.model.run import lease_name, worker_lease_name
from backcast.model.states import RunState
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.spark import processes
from backcast.testing.samples import sample_manifest
from tests.unit.test_cli_child import Scripted, project, scripted

__all__ = ["project", "scripted"]


@pytest.fixture
def run_id(project: Path) -> str:
    with closing(Wiring(load_project(project))) as world:
        return world.store().runs.create(sample_manifest()).run_id


def told(project: Path, run_id: str, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    assert dispatch(["status", run_id, "--json", "--project", str(project)]) == 0
    document = json.loads(capsys.readouterr().out)
    return document["next_command"], document["because"]


def test_nobody_is_told_to_start_what_a_detached_process_starts(
    project: Path, scripted: Scripted, run_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(project, run_id, capsys)[0] == f"backcast run {run_id}"
    scripted("time.sleep(30)")
    started = detached.detach(project, None, run_id)
    assert told(project, run_id, capsys) == (
        f"backcast wait {run_id}",
        "planned: a detached process starts Spark for it",
    )
    os.kill(started.pid, 9)
    os.waitpid(started.pid, 0)
    assert told(project, run_id, capsys)[0] == f"backcast run {run_id}"


def test_a_run_without_driver_whose_worker_lives_is_being_worked_on(
    project: Path, run_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The worker drives it as soon as its chunk is done."""
    with closing(Wiring(load_project(project))) as world:
        runs = world.store().runs
        for state in (RunState.APPROVED, RunState.RUNNING):
            runs.transition(runs.run(run_id), state)
        world.store().leases.acquire(worker_lease_name(run_id, "a"), world.holder(), 60)
    assert told(project, run_id, capsys)[0] == f"backcast wait {run_id}"


def test_a_second_driver_is_refused_before_it_starts_spark(project: Path, run_id: str) -> None:
    from backcast.control import ControlPlane

    with closing(Wiring(load_project(project))) as world:
        runs = world.store().runs
        for state in (RunState.APPROVED, RunState.RUNNING):
            runs.transition(runs.run(run_id), state)
        mine = world.holder()
        another = processes.identify(os.getppid())
        assert another is not None
        theirs = mine.model_copy(update={"pid": another.pid, "started": another.started})
        lease = world.store().leases.acquire(lease_name(run_id), theirs, 60)
        with pytest.raises(LeaseHeld, match="right now") as caught:
            ControlPlane(world).run(run_id)
        assert f"backcast worker {run_id}" in str(caught.value.hint)
        world.store().leases.release(lease)
        world.store().leases.acquire(lease_name(run_id), mine, 60)
        with pytest.raises(LeaseHeld, match="this process itself holds"):
            ControlPlane(world).run(run_id)
        assert world._spark is None
