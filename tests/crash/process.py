"""Real processes: the Spark child of a command, armed to be killed at a point, and a run's life across many of them.

The command's own half is left out on purpose: it would end the JVM that a killed child leaves behind. Here it is as if
it had been killed too.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, Self

from backcast.cli.protocol import Job, Message
from backcast.cli.spark_child import command
from backcast.errors import BackcastError, StateConflict, from_dict
from backcast.spark import processes
from backcast.spark.processes import ProcessIdentity
from backcast.testing.faults import VARIABLE, nothing
from tests.cheap import cheap
from tests.crash.lake import SCOPE
from tests.crash.life import GOALS, Life
from tests.crash.witness import Anomaly

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

_END_SECONDS = 30.0


class Lost(Exception):
    """The process ended without an answer."""


class Bug(Anomaly):
    """The process answered with an error that nobody raised on purpose."""


@dataclass
class SparkProcess:
    """One child. Leaving the context ends it with its JVM; when it was killed, its JVM is left to itself."""

    project: Path
    fault: str = ""
    settings: Mapping[str, str] = field(default_factory=cheap)
    """What the environment says beside this process's own."""

    def __enter__(self) -> Self:
        reading, writing = os.pipe()
        environment = {**os.environ, **self.settings, VARIABLE: self.fault}
        with (self.project / "children.log").open("ab") as log:
            self.process = subprocess.Popen(
                command(writing),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=(writing,),
                process_group=0,
                env=environment,
            )
        os.close(writing)
        self._messages = os.fdopen(reading, "rb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(BrokenPipeError):
            self._stdin.close()
        if self.process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(_END_SECONDS)
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._messages.close()

    def send(self, verb: Any, **arguments: Any) -> None:
        with suppress(BrokenPipeError):
            self._stdin.write(Job(verb, arguments, str(self.project)).line())
            self._stdin.flush()

    def answer(self, heard: Callable[[str], None] = nothing) -> Any:
        """The verb's result. Raises the error that it raised, or Lost. What it says meanwhile goes to `heard`."""
        for line in self._messages:
            message = Message.read(line)
            match message.type:
                case "progress":
                    heard(message.body["message"])
                case "result":
                    return message.body
                case "error":
                    raise from_dict(message.body)
                case "crash" | "stopped":
                    raise Bug(message.traceback or message.type)
        raise Lost(f"exit code {self.process.wait()}")

    def call(self, verb: Any, heard: Callable[[str], None] = nothing, **arguments: Any) -> Any:
        self.send(verb, **arguments)
        return self.answer(heard)

    def jvm(self) -> ProcessIdentity | None:
        """As the operating system knows it; None before there is one."""
        return jvm_below(self.process.pid)

    def strike(self, kill: str) -> ProcessIdentity | None:
        """SIGKILL of Python, of the JVM, or of both; the JVM, which may be left behind, or was not there yet."""
        jvm = self.jvm()
        if kill in ("jvm", "both") and jvm is not None:
            os.kill(jvm.pid, signal.SIGKILL)
        if kill in ("python", "both"):
            self.process.kill()
        return jvm

    @cached_property
    def _stdin(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin


def jvm_below(pid: int) -> ProcessIdentity | None:
    """The JVM that a process started."""
    found = subprocess.run(["pgrep", "-P", str(pid), "java"], capture_output=True, text=True, check=False)
    return processes.identify(int(found.stdout.split()[0])) if found.stdout.strip() else None


@dataclass
class RealLife(Life):
    """A run whose commands are processes of their own."""

    orphans: list[ProcessIdentity | None] = field(default_factory=list)
    """JVMs of killed processes, which mostly end by themselves."""
    topics: bool = False
    """Whether the project reads some."""

    def go(self, verbs: str, fault: str = "") -> BackcastError | Lost | None:
        """One process for these commands, the first of which may repeat one that was killed. What ended it, if any."""
        with SparkProcess(self.shop.root, fault, cheap(self.shop.format, topics=self.topics)) as process:
            try:
                for verb in verbs.split():
                    self.call(process, verb)
                if fault.endswith(":jvm"):
                    # A command that has no further use for the JVM does not notice that it was killed.
                    process.call("plan", **self.arguments("plan") | {"record": False})
            except (BackcastError, Lost) as error:
                self.orphans.append(self.jvm())
                return error
        return None

    def kill(self, verbs: str, fault: str) -> None:
        """The same, and it must end as a kill does: no answer, or Failed (5), or OutcomeUnknown (6)."""
        error = self.go(verbs, fault)
        if error is None:
            raise Anomaly(f"{fault} was never reached by {verbs}")
        if fault.endswith(":jvm") != isinstance(error, BackcastError) or getattr(error, "exit_code", 5) not in (5, 6):
            raise Anomaly(f"{fault} ended in {error!r}")

    def finish(self, verbs: str) -> None:
        """The commands with nobody in their way."""
        error = self.go(verbs)
        if error is not None:
            raise error

    def jvm(self) -> ProcessIdentity | None:
        """The one that the holder of the run's lease, dead or alive, works with."""
        lease = self.look(lambda control: control.status(self.run_id).holder) if self.run_id else None
        if lease is None or lease.holder.jvm_pid is None or lease.holder.jvm_started is None:
            return None
        return ProcessIdentity(lease.holder.jvm_pid, lease.holder.jvm_started)

    def close(self) -> None:
        """End what was left behind, and nothing else."""
        for orphan in self.orphans:
            if orphan is not None:
                processes.end(orphan)

    def call(self, process: SparkProcess, verb: str) -> None:
        """One command in that process. It may find that everything was done already, and say so."""
        try:
            answer = process.call(verb, **self.arguments(verb))
        except StateConflict:
            if self.state not in GOALS.get(verb, frozenset()):
                raise
            return
        if verb == "plan":
            self.run_id = answer["run_id"]

    def arguments(self, verb: str) -> dict[str, Any]:
        match verb:
            case "plan":
                return {"request": self.shop.request(*SCOPE).as_json(), "record": True}
            case "gc":
                return {"dry_run": False}
            case "undo":
                return {"run_id": self.run_id, "rewrite": False}
            case _:
                return {"run_id": self.run_id}
