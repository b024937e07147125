"""Children that outlive their command: `run --detach`.

A detached child writes its messages to a file of its run and holds a lock on it while it lives, so that anyone can tell
later whether it still works and how it ended, without trusting a process id.
"""

from __future__ import annotations

import fcntl
import json
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from backcast.cli.locate import log_file, private_folder, short_path
from backcast.cli.protocol import BUG, Job, Message
from backcast.cli.spark_child import child_environ, command, stdin_of
from backcast.errors import BackcastError, LeaseHeld, SparkFailed, from_dict


@dataclass(frozen=True, slots=True)
class Detached:
    """A child that was let go."""

    run_id: str
    pid: int
    log: str

    def as_json(self) -> dict[str, Any]:
        return {"run_id": self.run_id, "pid": self.pid, "log": self.log, "next": f"backcast wait {self.run_id}"}


def detach(project: Path, profile: str | None, run_id: str, *, yes: bool = False) -> Detached:
    """Start the run in a session of its own and return at once. Raises LeaseHeld when one is at work already."""
    job = Job("run", {"run_id": run_id, "yes": yes}, str(project), profile, detached=True)
    return _let_go(project, job, run_id, f"backcast wait {run_id}")


def detach_stream(project: Path, profile: str | None, name: str, **arguments: Any) -> Detached:
    """The same with a stream."""
    job = Job("stream-start", {"name": name, **arguments}, str(project), profile, detached=True)
    return _let_go(project, job, stream_work(name), f"backcast stream status {name}")


def stream_work(name: str) -> str:
    """Under which the child of a stream is known here; no run id has a dot."""
    return f"stream.{quote(name, safe='')}"


def _let_go(project: Path, job: Job, run_id: str, look: str) -> Detached:
    log = log_file(project, job.verb)
    path = _messages(project, run_id)
    with path.open("ab") as messages, log.open("ab") as output:
        try:
            # The lock belongs to the open file, which the child inherits: it holds until the child ends.
            fcntl.flock(messages, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LeaseHeld(f"a detached process works on {run_id}", hint=look) from None
        messages.truncate(0)
        messages.write(json.dumps({"log": short_path(log)}).encode() + b"\n")
        messages.flush()
        process = subprocess.Popen(
            command(messages.fileno()),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=child_environ(),
            pass_fds=(messages.fileno(),),
            start_new_session=True,
        )
    with suppress(BrokenPipeError):
        stdin_of(process).write(job.line())
        stdin_of(process).close()
    # It is meant to live on; Python would warn about a child that nobody waited for.
    process.returncode = 0
    return Detached(run_id, process.pid, short_path(log))


def is_working(project: Path, run_id: str) -> bool:
    """Whether a detached child of this run is alive."""
    path = _messages(project, run_id)
    if not path.exists():
        return False
    with path.open("rb") as messages:
        try:
            fcntl.flock(messages, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def failure(project: Path, run_id: str, since: float) -> BackcastError | None:
    """Why the last detached child of this run ended without an answer or with an error; None when it did not.

    A child that ended before `since`, the time of the last change of the run, has nothing to say about it any more.
    """
    path = _messages(project, run_id)
    if not path.exists() or is_working(project, run_id) or path.stat().st_mtime < since:
        return None
    first, *lines = path.read_bytes().splitlines() or [b"{}"]
    log, last = "", Message("progress")
    # A full disk cuts a line short.
    with suppress(json.JSONDecodeError):
        log = json.loads(first or b"{}").get("log", "")
        last = Message.read(lines[-1]) if lines else last
    match last.type:
        case "result":
            return None
        case "error":
            error = from_dict(last.body)
        case "crash":
            error = BackcastError(f"unexpected {last.body['message']}", hint=BUG)
        case _:
            hint = f"backcast run {run_id} continues"
            error = SparkFailed("the detached process ended without an answer", hint=hint, run_id=run_id)
    error.attributes |= {"log": log}
    return error


def _messages(project: Path, run_id: str) -> Path:
    folder = private_folder(project) / "detached"
    folder.mkdir(exist_ok=True)
    return folder / f"{run_id}.jsonl"
