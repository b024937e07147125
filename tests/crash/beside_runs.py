"""Restatements beside a stream: plan, run, publish and now and then undo, killed and repeated until all is done."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

from backcast.control import ControlPlane
from backcast.errors import BackcastError, Drifted, LeaseHeld, NotValidated, ScopeChanged
from backcast.faults import POINTS
from backcast.model.request import Request
from backcast.model.run import Run
from backcast.model.states import RunState
from backcast.spark import processes
from backcast.spark.processes import ProcessIdentity
from backcast.testing.faults import KILLS, VARIABLE
from backcast.testing.kafka_topics import wait_until
from backcast.testing.orders import Orders
from tests.cheap import cheap
from tests.crash.beside_orders import DAYS, POLICIES, RAW, Restated, Sender, Sent, mend
from tests.crash.beside_stream import Keeper, await_jvm, landed, wait_for_stream
from tests.crash.life import verb_of
from tests.crash.process import Lost, SparkProcess, jvm_below
from tests.crash.witness import Anomaly

_OVER = (RunState.PUBLISHED, RunState.UNDONE, RunState.CANCELLED)
_MOST_KILLS = 4
_PATIENCE = 1800.0
_REFUSED = {
    "keep": (Drifted,),
    "freeze": (Drifted, ScopeChanged),
    "fail": (Drifted, ScopeChanged),
    "restage": (Drifted, ScopeChanged, NotValidated),
}
"""How a run may end because live rows came at the wrong moment. Under `freeze` only once the process that held the
table was killed; under `restage` when the table that it reads lacks a live row."""


@dataclass
class Restating:
    """The restatements of one soak, one after the other."""

    orders: Orders
    sender: Sender
    keeper: Keeper
    dice: random.Random
    kills_on: bool = True
    done: list[Restated] = field(default_factory=list)
    orphans: list[ProcessIdentity | None] = field(default_factory=list)
    copied: set[int] = field(default_factory=set)
    """Orders that are in the table which `restage` reads."""

    def next(self) -> Restated:
        """One restatement from its plan to its end."""
        first = self.dice.randrange(len(DAYS) - 3)
        days = DAYS[first : first + self.dice.randint(1, 3)]
        policy = self.dice.choice((*POLICIES, "pause"))
        made = Restated(100 * (len(self.done) + 1), policy, days, self.dice.random() < 0.25 and policy != "pause")
        print(f"run: {policy} {days[0]}..{days[-1]}", flush=True)
        self.done.append(made)
        if policy == "pause":
            self._pause(made)
        else:
            self._restate(made)
        print(
            f"run: {policy} is {'published' if made.published else self._state(made)}, {made.kills} kills", flush=True
        )
        return made

    def close(self) -> None:
        for orphan in self.orphans:
            if orphan is not None:
                with suppress(ProcessLookupError):
                    processes.end(orphan)

    def _restate(self, made: Restated) -> None:
        mend(self.orders, made.number)
        calm = made.policy in ("freeze", "restage") or self.dice.random() < 0.8
        quiet = made.policy == "fail" and calm
        self.sender.avoid(made.days if calm else ())
        if calm:
            self._await(made.days)
        stop = threading.Event()
        copying = threading.Thread(target=self._keep_copying, args=(stop,), daemon=True)
        if made.policy == "restage":
            self._copy()
            copying.start()

        def heard(message: str) -> None:
            if message == "computing" and not quiet:
                self.sender.avoid(())

        try:
            while (verbs := self._left(made)) is not None:
                self._attempt(made, verbs, heard)
        finally:
            self.sender.avoid(())
            stop.set()
            if copying.is_alive():
                copying.join(_PATIENCE)
        self._look(made)

    def _left(self, made: Restated) -> list[str] | None:
        """The commands that are still to do; None when it is over."""
        state = self._state(made)
        if state in _OVER and not (state is RunState.PUBLISHED and made.undoes):
            return None
        undo = ["undo"] if made.undoes else []
        if state in (RunState.PUBLISHED, RunState.UNDOING):
            return undo
        if made.given_up or state in (RunState.REJECTED, RunState.CANCELLING):
            return ["cancel"]
        if state in (RunState.ACCEPTED, RunState.PUBLISHING):
            return ["publish", *undo]
        return [*(["plan"] if state is None else []), "run", "publish", *undo]

    def _attempt(self, made: Restated, verbs: list[str], heard: Callable[[str], None]) -> None:
        """One process for these commands, which may be killed."""
        kill, fault, moment = self.dice.choice(KILLS), "", -1
        armed = self.kills_on and made.kills < _MOST_KILLS and self.dice.random() < 0.75
        if armed and self.dice.random() < 0.5:
            passed = {*verbs, *(["restage"] if made.policy == "restage" else [])}
            points = [each for each in POINTS if verb_of(each) in passed]
            fault = f"{self.dice.choice(points)}:{kill}"
        elif armed:
            moment = self.dice.randrange(len(verbs) + 1)
        struck = threading.Event()
        with SparkProcess(self.orders.root, fault, cheap(self.orders.format, topics=True)) as process:
            timers = [threading.Timer(self.dice.uniform(0, 8), self._strike, (process, kill, struck))]
            try:
                for number, verb in enumerate([*(["sweep"] if "plan" in verbs else []), *verbs]):
                    if number == moment:
                        timers[0].start()
                    self._call(process, made, verb, heard)
            except Lost as error:
                self._judge(made, kill in ("python", "both") and bool(fault or struck.is_set()), error)
            except BackcastError as error:
                killed = error.exit_code in (5, 6) and kill != "python" and bool(fault or struck.is_set())
                if not killed and isinstance(error, _REFUSED[made.policy]) and not self._lost_no_freeze(made, error):
                    print(f"  refused: {error.message[:150]}", flush=True)
                    made.given_up = True
                else:
                    self._judge(made, killed, error)
            finally:
                for timer in timers:
                    timer.cancel()
                self.orphans.append(process.jvm())

    def _lost_no_freeze(self, made: Restated, error: BackcastError) -> bool:
        """Whether a table that was held all the time got live rows in scope."""
        return made.policy == "freeze" and not made.kills and isinstance(error, ScopeChanged)

    def _judge(self, made: Restated, expected: bool, error: Exception) -> None:
        if not expected:
            raise Anomaly(f"run {made.run_id} under {made.policy} ended in {error!r}") from error
        print(f"  killed: {str(error)[:150]}", flush=True)
        made.kills += 1

    def _strike(self, process: SparkProcess, kill: str, struck: threading.Event) -> None:
        if await_jvm(process):
            struck.set()
            self.orphans.append(process.strike(kill))

    def _call(self, process: SparkProcess, made: Restated, verb: str, heard: Callable[[str], None]) -> None:
        match verb:
            case "sweep":
                for ghost in self._open_runs():
                    process.call("cancel", run_id=ghost.run_id)
            case "plan":
                request = self._request(made)
                answer = process.call("plan", request=request.as_json(), record=True)
                if answer["refused"]:
                    raise Anomaly(f"the plan was refused: {answer['manifest']['findings']}")
                made.run_id = answer["run_id"]
            case "run":
                process.call("run", heard, run_id=made.run_id, hold=made.policy == "freeze")
            case "undo":
                process.call("undo", run_id=made.run_id, rewrite=False)
            case _:
                process.call(verb, run_id=made.run_id)

    def _request(self, made: Restated) -> Request:
        end = DAYS[DAYS.index(made.days[-1]) + 1]
        return Request(pipeline=made.policy, start=made.days[0], end=end, reason="soak", requested_by="tests")

    def _pause(self, made: Restated) -> None:
        """The whole of `stream backfill --pause` as a command that is killed and typed again, under constant input."""
        end = DAYS[DAYS.index(made.days[-1]) + 1]
        window = ("live", "--from", made.days[0], "--to", end, "--pause", "--yes", "--reason", "soak")
        with self.keeper.held():
            self._typed(made, "stream", "start", "live", "--detach", calm=True)
            until = time.monotonic() + _PATIENCE
            while not self._typed(made, "stream", "backfill", *window):
                if time.monotonic() > until:
                    raise Anomaly("the paused backfill does not come to its end")
            with closing(self.orders.open().world) as world:
                control = ControlPlane(world)
                status = control.stream_status("live")
                published = [each for each in control.list() if each.pipeline == "orders" and each.state == "published"]
                made.run_id = max(published, key=lambda each: each.created_at).run_id
                if status.lease is None or not status.alive:
                    raise Anomaly(f"the stream was not resumed: {status.state}")
                wait_until(lambda: control.stream_status("live").state == "running", "it runs again", _PATIENCE)
                holder = status.lease.holder
                if self.dice.random() < 0.5:
                    control.stream_stop("live")
                else:
                    os.kill(holder.pid, signal.SIGKILL)
                    if holder.jvm_pid is not None and holder.jvm_started is not None:
                        self.orphans.append(ProcessIdentity(holder.jvm_pid, holder.jvm_started))
        self._look(made)

    def _typed(self, made: Restated, *words: str, calm: bool = False) -> bool:
        """Whether the command came to its end. It is killed alone, with the process that it started, or not at all."""
        command = [sys.executable, "-m", "backcast", *words, "--project", str(self.orders.root), "--json"]
        kill = (
            None if calm or made.kills >= _MOST_KILLS or not self.kills_on else self.dice.choice(("it", "both", None))
        )
        environment = {**os.environ, **cheap(self.orders.format, topics=True), VARIABLE: ""}
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, env=environment, text=True, **pipes) as process:
            try:
                told = process.communicate(timeout=self.dice.uniform(1, 40) if kill else _PATIENCE)
            except subprocess.TimeoutExpired:
                if kill is None:
                    process.kill()
                    raise
                self._end_family(process.pid, children=kill == "both")
                process.communicate()
                made.kills += 1
                print(f"  killed: {kill}", flush=True)
                return False
        if process.returncode == LeaseHeld.exit_code and LeaseHeld.code in "".join(told):
            # What was killed alone leaves a child behind, which ends by itself.
            time.sleep(2)
            return False
        if process.returncode:
            raise Anomaly(f"{' '.join(words)} ended in {process.returncode}: {told}")
        return True

    def _end_family(self, pid: int, *, children: bool) -> None:
        below = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()
        self.orphans += [jvm_below(int(each)) for each in below]
        for each in [pid, *(map(int, below) if children else ())]:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)

    def _look(self, made: Restated) -> None:
        """What became of it, for the oracle."""
        if self._state(made) is not RunState.PUBLISHED or made.run_id is None:
            return
        with closing(self.orders.open().world) as world:
            log = world.reader().manifest(made.run_id).inputs[0].log
            made.read = {} if log is None else {each.partition: (each.start, each.end) for each in log.partitions}
            made.version = world.reader().publications(made.run_id)[-1].version
        made.published = True

    def _state(self, made: Restated) -> RunState | None:
        if made.run_id is None:
            return None
        with closing(self.orders.open().world) as world:
            return world.reader().run(made.run_id).state

    def _open_runs(self) -> list[Run]:
        """Planned by a command that died before it could say so."""
        known = {each.run_id for each in self.done}
        with closing(self.orders.open().world) as world:
            runs = ControlPlane(world).list()
        return [each for each in runs if each.state not in (*_OVER, RunState.SUPERSEDED) and each.run_id not in known]

    def _await(self, days: tuple[str, ...]) -> None:
        """Until the stream has landed what was sent of these days."""
        ends: dict[int, int] = {}
        for each in self._sent(days):
            ends[each.partition] = max(ends.get(each.partition, 0), each.offset + 1)
        wait_for_stream(self.orders, ends, f"the stream has read {', '.join(days)}")

    def _sent(self, days: tuple[str, ...]) -> list[Sent]:
        return [each for each in list(self.sender.sent) if each.day in days]

    def _keep_copying(self, stop: threading.Event) -> None:
        while not stop.wait(1.0):
            self._copy()

    def _copy(self) -> None:
        """What the stream has landed goes into the table that `restage` reads, and nothing else: who reads more than
        the stream has, doubles it.
        """
        ends = landed(self.orders)
        new = [each for each in list(self.sender.sent) if each.is_before(ends) and each.order.id not in self.copied]
        if not new:
            return
        rows = ", ".join(
            f"({one.id}, '{one.shop}', TIMESTAMP'{one.at:%Y-%m-%d %H:%M:%S}Z', {one.amount}, DATE'{each.day}')"
            for each in new
            for one in (each.order,)
        )
        self.orders.spark.sql(f"INSERT INTO {RAW} VALUES {rows}")
        self.copied |= {each.order.id for each in new}
