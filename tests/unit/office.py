"""People who work on one project from accounts of their own, on a real store and without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from backcast.control import ControlPlane
from backcast.errors import BackcastError
from backcast.model.policy import need_under, reach_of
from backcast.model.run import Run
from backcast.model.states import RunState
from backcast.project.clock import SystemClock
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.testing.samples import sample_manifest
from tests.unit.projects import GOOD, project, write

ROLES = "{team-lead: [ann, bob], data-lead: [ann, bob, cat], manager: [bob], director: [dan]}"
TWO = "matrix: [{needs: [manager, data-lead]}]\n"


class LateClock(SystemClock):
    """The machine's clock, so far ahead."""

    def __init__(self, ahead: timedelta) -> None:
        self._ahead = ahead

    def now(self) -> datetime:
        return super().now() + self._ahead


@dataclass
class Office:
    """A project with a policy, and people who work on it from accounts of their own."""

    root: Path
    monkeypatch: pytest.MonkeyPatch

    def policy(self, more: str = TWO, roles: str = ROLES) -> None:
        write(self.root, {"policy.yaml": f"roles: {roles}\n{more}"})

    @contextmanager
    def door(self, account: str = "ann", later: timedelta = timedelta()) -> Iterator[ControlPlane]:
        self.monkeypatch.setattr("backcast.project.people.os_user", lambda: account)
        self.monkeypatch.setattr("backcast.project.people.login_user", lambda: None)
        control = ControlPlane(Wiring(load_project(self.root, environ={}), LateClock(later)))
        try:
            yield control
        finally:
            control.world.close()

    def planned(self, days: int = 3, *, by: str = "zoe", with_policy: bool = True, cost: float | None = None) -> Run:
        with self.door() as control:
            manifest, policy = sample_manifest(days=days, dataset="daily"), control.world.policy()
            guess = manifest.estimate.model_copy(update={"cost_high": cost})
            manifest = manifest.model_copy(update={"estimate": guess})
            if policy is not None and with_policy:
                need = need_under(policy, reach_of(manifest, None, whole_table=False), (by,))
                manifest = manifest.model_copy(update={"approval": need})
            return control.world.store().runs.create(manifest)

    def approve(self, account: str, run: Run, role: str | None = None, comment: str = "", **late: float) -> Run:
        with self.door(account, timedelta(**late)) as control:
            return control.approve(run.run_id, role=role, comment=comment)

    def moved(self, run: Run, *states: RunState) -> Run:
        with self.door() as control:
            for state in states:
                data = {"staged": "77"} if state is RunState.STAGED else {"base": "1"}
                run = control.world.store().runs.transition(run, state, **data)  # type: ignore[arg-type]  # event data
            return run

    def refused(self, run: Run, verb: str = "run", *, yes: bool = False, **late: float) -> BackcastError:
        with self.door("ann", timedelta(**late)) as control, pytest.raises(BackcastError) as caught:
            getattr(control, verb)(run.run_id, yes=yes)
        return caught.value


def open_office(root: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    """With two people to agree to every run."""
    monkeypatch.delenv("BACKCAST_TOKEN", raising=False)
    project(root, f"{GOOD}policy: policy.yaml\n")
    found = Office(root, monkeypatch)
    found.policy()
    return found
