"""A command's end of its Spark child: start it, give it jobs, follow its messages, stop it, never lose its answer."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Any, Self

from backcast.cli.hearing import Stops, Terminals, stops
from backcast.cli.locate import find_project, log_file, short_path
from backcast.cli.options import SIGNING_KEY, Common
from backcast.cli.protocol import BUG, COMMITTING, Job, Message, Verb
from backcast.errors import BackcastError, Failed, OutcomeUnknown, SparkFailed, from_dict

OnMessage = Callable[[dict[str, Any]], None]
_CLOSE_SECONDS = 30.0


class Stopped(KeyboardInterrupt):
    """The command got a signal, and its child has ended because of it."""

    def __init__(self, number: int, hint: str) -> None:
        super().__init__(number)
        self.exit_code = 128 + number
        self.hint = hint


def command(descriptor: int) -> list[str]:
    """How a child is started. The current folder must not be able to stand in for a module: hence -P."""
    return [sys.executable, "-P", "-u", "-m", "backcast.cli.child", str(descriptor)]


def child_environ() -> dict[str, str]:
    """The environment of a child: user code has no use for the key that evidence is signed with."""
    return {name: value for name, value in os.environ.items() if name != SIGNING_KEY}


def stdin_of(process: subprocess.Popen[bytes]) -> IO[bytes]:
    """The pipe to a child that was started with one."""
    if process.stdin is None:
        raise RuntimeError("the child was started without a pipe")
    return process.stdin


class SparkChild:
    """One child for the jobs of one command. Use as a context manager: leaving ends the child."""

    def __init__(self, common: Common, verb: Verb, *, dry: bool = False) -> None:
        self._common = common
        self.project = find_project(common.project)
        self.log: Path = log_file(self.project, verb, elsewhere=dry)
        self._environ = child_environ() | ({"PYTHONDONTWRITEBYTECODE": "1"} if dry else {})
        self.on_stopping: Callable[[], None] = lambda: None
        """Called when a signal was passed on and the child is expected to end."""
        self._process: subprocess.Popen[bytes] | None = None
        self._messages: IO[bytes] | None = None
        self._signals: list[int] = []
        self._stops = Stops()

    def __enter__(self) -> Self:
        reading, writing = os.pipe()
        try:
            with self.log.open("ab") as log:
                # A group of its own: the terminal's Ctrl-C reaches the command only, which passes it on.
                self._process = subprocess.Popen(
                    command(writing),
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env=self._environ,
                    pass_fds=(writing,),
                    process_group=0,
                )
        finally:
            os.close(writing)
        self._messages = os.fdopen(reading, "rb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process, messages = self._started()
        with suppress(BrokenPipeError):
            stdin_of(process).close()
        try:
            process.wait(_CLOSE_SECONDS)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()
            process.wait()
        # A JVM whose Python died while it started waits for nobody and would stay for ever.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        messages.close()

    def call(self, verb: Verb, arguments: dict[str, Any], on_progress: OnMessage = lambda _: None) -> Any:
        """The verb's answer as JSON values. Raises the error that the child raised, or says how the child was lost."""
        job = Job(verb, arguments, str(self.project), self._common.profile)
        with _Forwarding(self._forward):
            last = self._exchange(job, on_progress)
        if last is None or last.type == "stopped":
            raise self._lost(verb, arguments.get("run_id"))
        if last.type == "result":
            return last.body
        raise self._raised(last)

    def _exchange(self, job: Job, on_progress: OnMessage) -> Message | None:
        """The last message about the job; None when the child ended without one."""
        process, messages = self._started()
        try:
            stdin_of(process).write(job.line())
            stdin_of(process).flush()
        except BrokenPipeError:
            return None
        for line in messages:
            if not line.endswith(b"\n"):
                return None
            message = Message.read(line)
            if message.is_last:
                return message
            try:
                on_progress(message.body)
            except OSError as error:
                # The terminal has closed. What it means for the work, the signal says that comes with it.
                if error.errno != errno.EIO:
                    raise
        return None

    def _raised(self, message: Message) -> BackcastError:
        if message.type == "error":
            error = from_dict(message.body)
        else:
            error = BackcastError(f"unexpected {message.body['message']}", hint=BUG)
        error.attributes |= {"log": short_path(self.log), "traceback": message.traceback}
        return error

    def _lost(self, verb: Verb, run_id: str | None) -> BaseException:
        again = f"backcast {verb} {run_id}" if run_id else "the same command"
        commits = verb in COMMITTING
        look = " looks at the table first" if commits else " continues"
        if self._signals:
            return Stopped(self._signals[0], f"{again}{look}" if run_id else "")
        code = self._started()[0].wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        what = f"the Spark process of this command ended without an answer ({how})"
        attributes = {"log": short_path(self.log), **({"run_id": run_id} if run_id else {})}
        if commits:
            message = f"{what}; whether the {verb} landed is not known yet"
            return OutcomeUnknown(message, hint=f"{again}{look}: it finds out, and never does it twice", **attributes)
        if code == 0:
            return Failed(f"{what}; it was told to stop", hint=f"{again}{look}", **attributes)
        return SparkFailed(what, hint=f"{again}{look}; `backcast doctor` checks memory and Java", **attributes)

    def _forward(self, number: int) -> None:
        """Pass a stop on; the second one ends the child by force."""
        if not self._stops.hear():
            return
        process, _ = self._started()
        self._signals.append(number)
        if len(self._signals) > 1:
            process.kill()
        else:
            process.send_signal(number)
            self.on_stopping()

    def _started(self) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
        if self._process is None or self._messages is None:
            raise RuntimeError("the child is started by entering its context")
        return self._process, self._messages


class _Forwarding:
    """While a job is under way, signals go to the child instead of interrupting its reader."""

    def __init__(self, forward: Callable[[int], None]) -> None:
        self._forward = forward
        self._before: dict[int, Any] = {}
        self._terminals = Terminals()

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, *stops()):
                self._before[number] = signal.signal(number, self._handle)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self._terminals.let_go()
        self._forward(number)
