"""A command and its child process: answers, errors, signals and deaths all end in one clear way."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from backcast.cli import detached, spark_child
from backcast.cli.options import Common
from backcast.cli.protocol import Job, Message
from backcast.cli.spark_child import SparkChild, Stopped
from backcast.errors import BackcastError, Failed, LeaseHeld, OutcomeUnknown, ScopeChanged, SparkFailed
from backcast.model.report import Progress
from tests.unit.projects import GOOD, write

# A child of a few lines that speaks the protocol: the first line of a job says what it does.
SCRIPT = """
import json, os, signal, sys, time
messages = os.fdopen(int(sys.argv[1]), "wb", buffering=0)
def say(**message):
    messages.write(json.dumps(message).encode() + b"\\n")
for line in sys.stdin.buffer:
    job = json.loads(line)
    print("user code prints", flush=True)
    {body}
"""
Scripted = Callable[[str], None]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write(tmp_path, {"backcast.yaml": GOOD})


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Scripted:
    def use(body: str) -> None:
        program = SCRIPT.format(body=body)
        monkeypatch.setattr(spark_child, "command", lambda fd: [sys.executable, "-c", program, str(fd)])
        monkeypatch.setattr(detached, "command", lambda fd: [sys.executable, "-c", program, str(fd)])

    return use


def test_progress_comes_first_and_the_answer_last(project: Path, scripted: Scripted) -> None:
    """One child serves several jobs; what user code prints goes to the log, never to the screen."""
    scripted("say(type='progress', body=1); say(type='result', body=job['arguments'])")
    seen: list[object] = []
    with SparkChild(Common(project=project), "plan") as child:
        assert child.call("plan", {"a": 1}, seen.append) == {"a": 1}
        assert child.call("run", {"a": 2}, seen.append) == {"a": 2}
    assert seen == [1, 1]
    assert child.log.parent == project / ".backcast" / "logs"
    assert child.log.read_text() == "user code prints\n" * 2


def test_an_error_crosses_the_process_boundary_with_its_class(project: Path, scripted: Scripted) -> None:
    document = ScopeChanged("live rows arrived", hint="plan again", rows=3).as_dict()
    scripted(f"say(type='error', body={document!r}, traceback='T')")
    with SparkChild(Common(project=project), "publish") as child, pytest.raises(ScopeChanged) as caught:
        child.call("publish", {"run_id": "r"})
    assert caught.value.hint == "plan again"
    assert caught.value.attributes["rows"] == "3"
    assert caught.value.attributes["log"].endswith("-publish.log")


def test_an_unexpected_exception_of_the_child_is_an_internal_error(project: Path, scripted: Scripted) -> None:
    scripted("say(type='crash', body={'message': 'KeyError: 1'}, traceback='T')")
    with SparkChild(Common(project=project), "run") as child, pytest.raises(BackcastError) as caught:
        child.call("run", {"run_id": "r"})
    assert (caught.value.code, caught.value.exit_code) == ("internal", 1)


@pytest.mark.parametrize("half", ["", 'messages.write(b\'{"type": "res\'); '])
@pytest.mark.parametrize(
    ("verb", "error"), [("run", SparkFailed), ("publish", OutcomeUnknown), ("undo", OutcomeUnknown)]
)
def test_a_killed_child_leaves_the_outcome_of_a_commit_unknown(
    project: Path, scripted: Scripted, verb: str, error: type[BackcastError], half: str
) -> None:
    scripted(f"{half}os.kill(os.getpid(), signal.SIGKILL)")
    with SparkChild(Common(project=project), "run") as child, pytest.raises(error, match="SIGKILL") as caught:
        child.call(verb, {"run_id": "r-1"})  # type: ignore[arg-type]
    assert f"backcast {verb} r-1" in caught.value.hint


def signals_to_self(*numbers: int, every: float = 0.7) -> None:
    for number in numbers:
        time.sleep(every)
        os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_passed_on_and_the_child_may_finish(project: Path, scripted: Scripted, number: int) -> None:
    scripted(
        f"stop = lambda *_: (say(type='stopped'), sys.exit())\n    signal.signal({int(number)}, stop); time.sleep(60)"
    )
    heard: list[bool] = []
    with SparkChild(Common(project=project), "run") as child:
        child.on_stopping = lambda: heard.append(True)
        threading.Thread(target=signals_to_self, args=(number,)).start()
        with pytest.raises(Stopped) as caught:
            child.call("run", {"run_id": "r"})
    assert caught.value.exit_code == 128 + number
    assert "backcast run r" in caught.value.hint
    assert heard == [True]


def test_a_second_interrupt_ends_a_child_that_does_not_listen(project: Path, scripted: Scripted) -> None:
    scripted("signal.signal(signal.SIGINT, signal.SIG_IGN); time.sleep(60)")
    before = time.monotonic()
    with SparkChild(Common(project=project), "run") as child:
        threading.Thread(target=signals_to_self, args=(signal.SIGINT, signal.SIGINT), kwargs={"every": 2.2}).start()
        with pytest.raises(Stopped):
            child.call("run", {"run_id": "r"})
    assert time.monotonic() - before < 30


def test_one_stop_that_arrives_twice_ends_nobody_by_force(project: Path, scripted: Scripted) -> None:
    """As from `timeout`, or from a shell and the system when a terminal closes."""
    scripted(
        "heard = []; signal.signal(signal.SIGTERM, lambda *_: heard.append(1))\n"
        "    while not heard: time.sleep(0.1)\n"
        "    time.sleep(1.5); say(type='result', body=len(heard))"
    )
    with SparkChild(Common(project=project), "run") as child:
        twice = {"args": (signal.SIGTERM, signal.SIGTERM), "kwargs": {"every": 0.7}}
        threading.Thread(target=signals_to_self, **twice).start()  # type: ignore[arg-type]
        assert child.call("run", {"run_id": "r"}) == 1


ON_A_TERMINAL = """
import sys
from pathlib import Path
from backcast.cli import spark_child
from backcast.cli.options import Common
from backcast.cli.screen import Screen
from backcast.cli.working import Working
program, project = sys.argv[1:]
spark_child.command = lambda fd: [sys.executable, "-c", program, str(fd)]
with spark_child.SparkChild(Common(project=Path(project)), "stream-start") as child:
    work = Working(Screen(), child)
    answer = work.call("stream-start", "streaming", name="live")
    Path(project, "answer").write_text(answer)
    work.screen.note(answer)
"""


def test_a_terminal_that_closes_stops_a_stream_behind_its_batch(project: Path) -> None:
    """Nobody is left to read what the batch has to say, and that must not end it."""
    told = Progress(step="stream", message="batch 1").as_json()
    body = (
        "heard = []; signal.signal(signal.SIGHUP, lambda *_: heard.append(1))\n"
        f"    tell = lambda: say(type='progress', body={told!r})\n"
        "    while not heard: tell(); time.sleep(0.1)\n"
        "    for _ in range(10): tell(); time.sleep(0.1)\n"
        "    say(type='result', body='committed')"
    )
    pid, terminal = pty.fork()
    if pid == 0:
        program = SCRIPT.format(body=body)
        arguments = [sys.executable, "-c", ON_A_TERMINAL, program, str(project)]
        os.execv(sys.executable, arguments)  # noqa: S606 - a shell would get the signal in its place
    assert b"batch 1" in until_shown(terminal, b"batch 1")
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert (project / "answer").read_text() == "committed"


def until_shown(terminal: int, wanted: bytes) -> bytes:
    shown = b""
    while wanted not in shown:
        shown += os.read(terminal, 4096)
    return shown


def real_child(project: Path) -> tuple[subprocess.Popen[bytes], int]:
    reading, writing = os.pipe()
    process = subprocess.Popen(
        spark_child.command(writing), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, pass_fds=(writing,)
    )
    os.close(writing)
    assert process.stdin is not None
    process.stdin.write(Job("gc", {"dry_run": True}, str(project)).line())
    process.stdin.flush()
    return process, reading


def test_the_real_child_answers_with_the_project_error(tmp_path: Path) -> None:
    (tmp_path / "backcast.yaml").write_text("name: [\n")
    process, reading = real_child(tmp_path)
    assert process.stdin is not None
    with os.fdopen(reading, "rb") as messages:
        message = Message.read(messages.readline())
        process.stdin.close()
        assert messages.read() == b""
    assert (message.type, message.body["code"]) == ("error", "config.invalid")
    assert process.wait(30) == 0


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A project whose file never ends to be read, so that its job stays under way."""
    os.mkfifo(tmp_path / "backcast.yaml")
    return tmp_path


def test_a_child_does_not_outlive_its_command(endless: Path) -> None:
    """A killed command closes the pipe, and that is all that a child ever hears of it."""
    process, reading = real_child(endless)
    time.sleep(2)
    assert process.poll() is None
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(30) == 130
    os.close(reading)


def test_a_terminated_child_says_that_it_stopped(endless: Path) -> None:
    process, reading = real_child(endless)
    time.sleep(2)
    process.terminate()
    with os.fdopen(reading, "rb") as messages:
        assert Message.read(messages.readline()).type == "stopped"
    assert process.wait(30) == 130
    assert process.stdin is not None
    process.stdin.close()


def until_idle(project: Path, run_id: str) -> None:
    deadline = time.monotonic() + 30
    while detached.is_working(project, run_id):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_detached_run_is_seen_at_work_until_it_ends(project: Path, scripted: Scripted) -> None:
    """And a second one for the same run is refused meanwhile."""
    scripted("time.sleep(1.5); say(type='result', body=1)")
    started = detached.detach(project, None, "r-1")
    assert detached.is_working(project, "r-1")
    with pytest.raises(LeaseHeld):
        detached.detach(project, None, "r-1")
    os.waitpid(started.pid, 0)
    until_idle(project, "r-1")
    assert detached.failure(project, "r-1", since=0.0) is None
    assert (project / ".backcast" / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (f"say(type='error', body={Failed('full disk').as_dict()!r})", Failed),
        ("say(type='crash', body={'message': 'KeyError: 1'})", BackcastError),
        ("say(type='progress', body=1); os.kill(os.getpid(), signal.SIGKILL)", SparkFailed),
        ("os.kill(os.getpid(), signal.SIGKILL)", SparkFailed),
        ('os.write(int(sys.argv[1]), b\'{"type": "res\')', SparkFailed),
    ],
)
def test_how_a_detached_run_failed_can_be_asked_later(
    project: Path, scripted: Scripted, body: str, error: type[BackcastError]
) -> None:
    scripted(body)
    started = detached.detach(project, None, "r-1")
    os.waitpid(started.pid, 0)
    until_idle(project, "r-1")
    failure = detached.failure(project, "r-1", since=0.0)
    assert type(failure) is error
    assert failure.attributes["log"] == started.log
    assert detached.failure(project, "r-1", since=time.time() + 60) is None


def test_jobs_and_messages_survive_the_wire() -> None:
    job = Job("undo", {"run_id": "r", "rewrite": True}, "/p", "prod", detached=True)
    assert Job.read(job.line()) == job
    with pytest.raises(ValueError, match="no verb"):
        Job.read(json.dumps({"verb": "drop", "arguments": {}, "project": ""}).encode())


def test_a_dry_child_leaves_nothing_in_the_project(project: Path) -> None:
    before = sorted(project.rglob("*"))
    with SparkChild(Common(project=project), "plan", dry=True) as child:
        assert not child.log.is_relative_to(project)
    assert sorted(project.rglob("*")) == before
