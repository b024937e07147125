"""Commands typed into the story. They are the real ones; only Spark is shared, so that each need not start its own."""

from __future__ import annotations

import logging
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self

from backcast.cli import working
from backcast.cli.child import perform, plain
from backcast.cli.dispatch import INTERRUPTED, dispatch
from backcast.cli.protocol import Job, Verb
from backcast.cli.spark_child import OnMessage
from backcast.demo.narrator import Narrator
from backcast.spark.processes import ProcessIdentity, end

if TYPE_CHECKING:
    from backcast.cli.options import Common
    from backcast.control import ControlPlane


def typed(*arguments: str) -> int:
    """Show the command as one would type it, run it, give its exit code. Raises KeyboardInterrupt when it got one."""
    print(f"\n$ backcast {shlex.join(arguments)}", flush=True)
    code = dispatch(list(arguments))
    sys.stdout.flush()
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code


def expect(narrator: Narrator, code: int, *arguments: str) -> None:
    """Type the command. Raises ClaimBroken when it ends with another exit code."""
    ended = typed(*arguments)
    if ended != code:
        narrator.prove(f"backcast {arguments[0]} ends with exit code {code}", False, f"it was {ended}")


def heed_signals() -> None:
    """Let Ctrl-C and SIGTERM end the story with KeyboardInterrupt, so that whatever it started is stopped on the way.

    Spark puts a handler of its own in the place of ours, which calls the JVM in the middle of another call.
    """

    def interrupt(number: int, frame: FrameType | None) -> None:
        # Py4J logs the call that was under way as an error.
        logging.disable(logging.CRITICAL)
        raise KeyboardInterrupt

    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, interrupt)


@contextmanager
def variable(name: str, value: str) -> Iterator[None]:
    """Inside, this process and those it starts have the variable."""
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


class _HereInstead:
    """Does what a command's Spark child does, in this process and on a control plane that is open already."""

    def __init__(self, control: ControlPlane, common: Common, verb: Verb, *, dry: bool = False) -> None:
        self._control = control
        self.on_stopping = lambda: None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """The control plane stays open for the next command."""

    def call(self, verb: Verb, arguments: dict[str, Any], on_progress: OnMessage = lambda _: None) -> Any:
        job = Job(verb, arguments, project="")
        return plain(perform(self._control, job, lambda progress: on_progress(progress.as_json())))


@contextmanager
def in_process(control: ControlPlane) -> Iterator[None]:
    """Inside, commands of this process work on the control plane instead of starting a Spark child each."""
    start = vars(working)["SparkChild"]
    vars(working)["SparkChild"] = partial(_HereInstead, control)
    try:
        yield
    finally:
        vars(working)["SparkChild"] = start


def killed_half_way(control: ControlPlane, run_id: str, log: Path, patience: float = 600.0) -> tuple[int, int]:
    """Start `backcast run` in processes of its own and `kill -9` them once some chunks are staged and some are not.

    Gives the killed process and the number of chunks staged by then.
    """
    with log.open("ab") as output:
        command = subprocess.Popen(
            [sys.executable, "-P", "-m", "backcast", "run", run_id],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    deadline = time.monotonic() + patience
    try:
        while command.poll() is None and time.monotonic() < deadline:
            status = control.status(run_id)
            if status.counts.staged and status.holder is not None:
                holder = status.holder.holder
                # Waits until it is gone: on a busy machine a killed process may linger for a moment.
                end(ProcessIdentity(holder.pid, holder.started))
                return holder.pid, control.status(run_id).counts.staged
            time.sleep(0.05)
    finally:
        with suppress(ProcessLookupError):
            command.kill()
        command.wait()
    raise RuntimeError(f"the run that was to be killed got nowhere; see {log}")
