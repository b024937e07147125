"""SIGKILL around every side effect: of Python, of the JVM, of both; beside a live writer and a reader.

Starting Spark is what costs here, so one life is killed many times, each process repeats the command in which the one
before it died, and whatever nobody is killed in is done by this process in the session that it has. What a format does
its own way is tried with every kill on one of the two; commits also on both with the kill that leaves Python to make
sense of it: that of the JVM. `make soak` tries everything on both.
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
from pathlib import Path

import pytest

from backcast.cli.dispatch import dispatch
from backcast.control import ControlPlane
from backcast.demo.shell import in_process
from backcast.model.pipeline import TableFormat
from backcast.model.states import RunState
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.spark.processes import is_alive
from backcast.testing.faults import KILLS, VARIABLE
from tests.cheap import cheap
from tests.crash.lake import NEW, OUTSIDE, SCOPE, SCOPE_DAYS, Row
from tests.crash.life import TOUCHES_THE_TABLE, verb_of
from tests.crash.process import RealLife, SparkProcess

_PATIENCE = 120.0

ICEBERG, DELTA = TableFormat.ICEBERG, TableFormat.DELTA
Kills = dict[TableFormat, tuple[str, ...]]
"""What a life on that format goes through, in this order."""

STAGE: Kills = {
    ICEBERG: (
        "stage.after-open:both",
        "chunk.before-commit:jvm",
        "chunk.after-commit:jvm",
        "chunk.after-commit#2:python",
    ),
    DELTA: (
        "stage.after-open:python",
        "stage.after-open:jvm",
        "chunk.before-commit:python",
        "chunk.after-commit#2:both",
    ),
}
PUBLISH: Kills = {
    ICEBERG: (
        "publish.before-commit:jvm",
        "publish.before-commit:both",
        "publish.after-commit:both",
        "publish.after-commit:jvm",
    ),
    DELTA: ("publish.before-commit:python", "publish.after-commit:jvm"),
}
UNDO: Kills = {
    ICEBERG: ("undo.before-commit:jvm", "undo.after-commit:python", "undo.after-commit:jvm", "gc.after-forget:both"),
    DELTA: (
        "undo.before-commit:python",
        "undo.before-commit:both",
        "undo.after-commit:jvm",
        "undo.after-commit:both",
        "gc.after-forget:python",
        "gc.after-forget:jvm",
    ),
}
CANCEL: Kills = {
    ICEBERG: ("cancel.after-forget:python",),
    DELTA: ("cancel.after-forget:both", "cancel.after-forget:jvm"),
}
RESTAGE: Kills = {
    ICEBERG: ("restage.after-carry:jvm", "restage.after-carry:python"),
    DELTA: ("restage.after-carry:both", "chunk.after-commit:jvm"),
}
DRIVER = "chunk.before-commit:both"
COMMANDS = ("publish.before-commit:jvm", "publish.after-commit:python")


def through(kills: Kills) -> pytest.MarkDecorator:
    cases = [pytest.param(each, kills[each], id=each) for each in kills]
    return pytest.mark.parametrize(("real_life", "kills"), cases, indirect=["real_life"])


def test_every_kill_where_a_table_is_touched_is_tried() -> None:
    """A point or a kill that somebody adds is tried on one format at least, or this fails."""
    lives = [
        *STAGE.values(),
        *PUBLISH.values(),
        *UNDO.values(),
        *CANCEL.values(),
        *RESTAGE.values(),
        COMMANDS,
        (DRIVER,),
    ]
    tried = {kill.replace("#2", "") for life in lives for kill in life}
    assert tried >= {f"{point}:{kill}" for point in TOUCHES_THE_TABLE for kill in KILLS}


@through(STAGE)
def test_kills_while_the_stage_is_written(real_life: RealLife, kills: tuple[str, ...]) -> None:
    """The run continues where it was killed, and its publish is what an undisturbed one would be."""
    with real_life.witnessed() as witness:
        real_life.do("plan")
        for kill in kills:
            real_life.kill("run", kill)
        real_life.repeat("run", "publish")
    witness.verify(["old", "new"])
    assert real_life.lake.rows() == witness.expected("new")
    assert real_life.state is RunState.PUBLISHED
    real_life.check_ledger()
    real_life.check_refs()


@through(PUBLISH)
def test_kills_around_the_commit_of_a_publish(real_life: RealLife, kills: tuple[str, ...]) -> None:
    """Before it nothing is visible, after it everything; whoever repeats the command finds out which."""
    with real_life.witnessed() as witness:
        real_life.do("plan", "run")
        for kill in kills:
            if real_life.state is RunState.PUBLISHED:
                real_life.do("undo")
            real_life.kill("publish", kill)
            if kill.startswith("publish.after-commit"):
                real_life.repeat("publish")
    witness.verify(real_life.story())
    assert real_life.state is RunState.PUBLISHED
    assert real_life.lake.rows() == witness.expected("new")
    assert len(real_life.publications()) == sum("after-commit" in each for each in kills)
    real_life.check_ledger()
    real_life.check_refs()


@through(UNDO)
def test_kills_around_the_commit_of_an_undo_and_in_gc(real_life: RealLife, kills: tuple[str, ...]) -> None:
    """The old scope comes back once, every live row stays, and gc killed half-way leaves nothing behind."""
    with real_life.witnessed() as witness:
        real_life.do("plan", "run", "publish")
        for kill in kills:
            verb = verb_of(kill)
            if verb == "undo" and real_life.state is RunState.UNDONE:
                real_life.do("publish")
            real_life.kill(verb, kill)
            if kill.startswith("undo.after-commit"):
                real_life.repeat("undo")
        real_life.repeat("gc")
    witness.verify()
    assert real_life.state is RunState.UNDONE
    assert real_life.lake.rows() == witness.expected("old")
    assert len(real_life.publications()) == sum("undo.after-commit" in each for each in kills)
    assert real_life.publications()[-1].released_at is not None
    real_life.check_ledger()
    real_life.check_refs()


@through(CANCEL)
def test_kills_while_a_run_is_cancelled(real_life: RealLife, kills: tuple[str, ...]) -> None:
    """Nothing of the run stays behind, and nobody who reads the table notices."""
    with real_life.witnessed() as witness:
        real_life.do("plan", "run")
        for kill in kills:
            real_life.kill("cancel", kill)
        real_life.repeat("cancel")
    witness.verify(["old"])
    assert real_life.state is RunState.CANCELLED
    assert real_life.lake.rows() == witness.expected("old")
    real_life.check_ledger()
    real_life.check_refs()


def test_a_worker_goes_on_when_the_driver_is_killed(real_life: RealLife) -> None:
    """Two processes with a Spark each; the one that drives dies with a chunk in hand."""
    real_life.do("plan")
    with SparkProcess(real_life.shop.root) as worker:
        worker.send("worker", run_id=real_life.run_id)
        real_life.kill("run", DRIVER)
        assert worker.answer()["state"] == RunState.ACCEPTED
    real_life.check_ledger()
    real_life.do("publish")
    assert real_life.lake.rows() == OUTSIDE + NEW


@through(RESTAGE)
def test_kills_while_a_live_row_is_restaged(real_life: RealLife, lake_root: Path, kills: tuple[str, ...]) -> None:
    """What the new stage holds stays there, whichever command goes on; each row is in the result once."""
    real_life.shop.configure(lake_root, live="restage", chunks_per_job=1)
    real_life.do("plan", "run")
    arrived: Counter[Row] = Counter()
    for kill in kills:
        if verb_of(kill) == "restage":
            arrived[real_life.sell(SCOPE_DAYS[1], len(arrived) + 1)] += 1
            real_life.kill("publish", kill)
        else:
            real_life.kill("run", kill)
    real_life.repeat("publish")
    assert real_life.lake.rows() == OUTSIDE + NEW + arrived
    assert real_life.publications()[-1].amendment == len(arrived)
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


@pytest.mark.parametrize("real_life", [DELTA], indirect=True)
def test_the_command_line_says_by_its_exit_code_that_the_outcome_is_unknown(real_life: RealLife) -> None:
    """6, whether the JVM or Python was killed, before or after the commit; the same command then finds out."""
    window = ["--from", SCOPE[0], "--to", SCOPE[1], "--reason", "revenue forgot the quantity", "--yes"]
    assert _backcast(real_life, COMMANDS[0], "backfill", "revenue", *window) == 6
    real_life.run_id = real_life.look(lambda control: control.list())[0].run_id
    assert _backcast(real_life, COMMANDS[1], "publish", real_life.run_id) == 6
    assert _here(real_life, "publish", real_life.run_id) == 0
    assert real_life.lake.rows() == OUTSIDE + NEW
    real_life.check_ledger()
    real_life.check_refs()


def _backcast(life: RealLife, fault: str, *arguments: str) -> int:
    """The exit code of a command. Under --json it must end with one document, also when it failed."""
    command = [sys.executable, "-m", "backcast", *arguments, "--project", str(life.shop.root), "--json"]
    environment = {**os.environ, **cheap(life.shop.format), VARIABLE: fault}
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
