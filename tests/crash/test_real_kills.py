"""SIGKILL around every side effect: of Python, of the JVM, of both; beside a live writer and a reader.

Starting Spark is what costs here, so one life is killed many times, each process repeats the command in which the one
before it died, and whatever nobody is killed in is done by this process in the session that it has.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing

from backcast.cli.dispatch import dispatch
from backcast.control import ControlPlane
from backcast.demo.shell import in_process
from backcast.model.states import RunState
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.spark.processes import is_alive
from backcast.testing.faults import VARIABLE
from tests.cheap import cheap
from tests.crash.lake import NEW, OUTSIDE, SCOPE, SCOPE_DAYS
from tests.crash.process import RealLife, SparkProcess

_PATIENCE = 120.0


def test_kills_while_the_stage_is_written(real_life: RealLife) -> None:
    """The run continues where it was killed, and its publish is what an undisturbed one would be."""
    with real_life.witnessed() as witness:
        real_life.do("plan")
        real_life.kill("run", "stage.after-open-intent:python")
        real_life.kill("run", "stage.after-open:jvm")
        real_life.kill("run", "chunk.before-commit:jvm")
        real_life.kill("run", "chunk.after-commit:both")
        real_life.kill("run", "chunk.after-commit#2:python")
        real_life.repeat("run", "publish")
    witness.verify(["old", "new"])
    assert real_life.lake.rows() == witness.expected("new")
    assert real_life.state is RunState.PUBLISHED
    real_life.check_ledger()
    real_life.check_refs()


def test_kills_around_the_commit_of_a_publish(real_life: RealLife) -> None:
    """Before it nothing is visible, after it everything; whoever repeats the command finds out which."""
    with real_life.witnessed() as witness:
        real_life.do("plan", "run")
        real_life.kill("publish", "publish.after-intent:python")
        real_life.kill("publish", "publish.before-commit:python")
        real_life.kill("publish", "publish.before-commit:jvm")
        real_life.kill("publish", "publish.before-commit:both")
        real_life.kill("publish", "publish.after-commit:python")
        real_life.repeat("publish", "undo")
        real_life.kill("publish", "publish.after-commit:jvm")
        real_life.repeat("publish", "undo")
        real_life.kill("publish", "publish.after-commit:both")
        real_life.repeat("publish")
    witness.verify(["old", "new", "old", "new", "old", "new"])
    assert real_life.lake.rows() == witness.expected("new")
    real_life.check_ledger()
    real_life.check_refs()


def test_kills_around_the_commit_of_an_undo_and_in_gc(real_life: RealLife) -> None:
    """The old scope comes back once, every live row stays, and gc killed half-way leaves nothing behind."""
    with real_life.witnessed() as witness:
        real_life.do("plan", "run", "publish")
        real_life.kill("undo", "undo.before-commit:python")
        real_life.kill("undo", "undo.before-commit:jvm")
        real_life.kill("undo", "undo.after-commit:both")
        real_life.repeat("undo", "publish")
        real_life.kill("undo", "undo.after-commit:jvm")
        real_life.repeat("undo")
        real_life.kill("gc", "gc.after-forget:python")
        real_life.repeat("gc")
    witness.verify()
    assert real_life.lake.rows() == witness.expected("old")
    assert real_life.publications()[-1].released_at is not None
    real_life.check_ledger()
    real_life.check_refs()


def test_a_worker_goes_on_when_the_driver_is_killed(real_life: RealLife) -> None:
    """Two processes with a Spark each; the one that drives dies with a chunk in hand."""
    real_life.do("plan")
    with SparkProcess(real_life.shop.root) as worker:
        worker.send("worker", run_id=real_life.run_id)
        real_life.kill("run", "chunk.before-commit:both")
        assert worker.answer()["state"] == RunState.ACCEPTED
    real_life.check_ledger()
    real_life.do("publish")
    assert real_life.lake.rows() == OUTSIDE + NEW


def test_kills_while_a_live_row_is_restaged(real_life: RealLife) -> None:
    """What the new stage holds stays there, whichever command goes on; the row is in the result once."""
    real_life.shop.configure(real_life.lake.root, live="restage", chunks_per_job=1)
    real_life.do("plan", "run")
    live = real_life.sell(SCOPE_DAYS[1])
    real_life.kill("publish", "restage.after-amend:both")
    real_life.kill("publish", "restage.before-carry:jvm")
    real_life.kill("run", "restage.after-carry:python")
    real_life.kill("publish", "chunk.after-commit:both")
    real_life.repeat("publish")
    assert real_life.lake.rows() == OUTSIDE + NEW + Counter([live])
    assert real_life.publications()[-1].amendment == 1
    real_life.check_ledger()
    real_life.check_refs()


def test_a_jvm_that_outlived_its_python_in_the_middle_of_a_commit_is_ended_before_anyone_looks(
    real_life: RealLife,
) -> None:
    """Otherwise "did not land" could still become "landed" after the next process has looked."""
    real_life.do("plan", "run")
    with SparkProcess(real_life.shop.root) as publisher:
        with closing(sqlite3.connect(real_life.lake.root / "catalog.db", isolation_level=None)) as catalog:
            catalog.execute("BEGIN IMMEDIATE")
            publisher.send("publish", run_id=real_life.run_id)
            _wait_for_intent(real_life)
            orphan = real_life.jvm()
            assert orphan is not None
            os.kill(orphan.pid, signal.SIGSTOP)
            publisher.process.kill()
            publisher.process.wait()
            catalog.execute("ROLLBACK")
        real_life.orphans.append(orphan)
        assert is_alive(orphan)
        real_life.do("publish")
        assert not is_alive(orphan)
    assert real_life.lake.rows() == OUTSIDE + NEW
    real_life.check_ledger()
    real_life.check_refs()


def test_the_command_line_says_by_its_exit_code_that_the_outcome_is_unknown(real_life: RealLife) -> None:
    """6, whether the JVM or Python was killed, before or after the commit; the same command then finds out."""
    window = ["--from", SCOPE[0], "--to", SCOPE[1], "--reason", "revenue forgot the quantity", "--yes"]
    assert _backcast(real_life, "publish.before-commit:jvm", "backfill", "revenue", *window) == 6
    real_life.run_id = real_life.look(lambda control: control.list())[0].run_id
    assert _backcast(real_life, "publish.after-commit:python", "publish", real_life.run_id) == 6
    assert _here(real_life, "publish", real_life.run_id) == 0
    assert real_life.lake.rows() == OUTSIDE + NEW
    real_life.check_ledger()
    real_life.check_refs()


def _backcast(life: RealLife, fault: str, *arguments: str) -> int:
    """The exit code of a command. Under --json it must end with one document, also when it failed."""
    command = [sys.executable, "-m", "backcast", *arguments, "--project", str(life.shop.root), "--json"]
    environment = {**os.environ, **cheap(), VARIABLE: fault}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_PATIENCE * 2, check=False)
    assert json.loads(done.stdout), done.stderr
    return done.returncode


def _here(life: RealLife, *arguments: str) -> int:
    """The same for a command that nobody kills: it does without a Spark child."""

    def command(control: ControlPlane) -> int:
        with in_process(control):
            return dispatch([*arguments, "--project", str(life.shop.root), "--json"])

    return life.look(command)


def _wait_for_intent(life: RealLife) -> None:
    """Until the publisher has written down what it is about to do, and a moment more: then it waits for the catalog."""
    deadline = time.monotonic() + _PATIENCE
    with closing(Wiring(load_project(life.shop.root))) as world:
        while not any(each.name == "publish" for each in world.store().effects.open(life.run_id)):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    time.sleep(1.0)
