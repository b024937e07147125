"""A recorded process is recognised, ended, and never mistaken for another one that got its pid."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from backcast.errors import Unavailable
from backcast.spark import processes
from backcast.spark.processes import ProcessIdentity, current, end, identify, is_alive

SLEEPER = [sys.executable, "-c", "import time; time.sleep(120)"]


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(SLEEPER)
    yield process
    process.kill()
    process.wait()


def identity_of(process: subprocess.Popen[bytes]) -> ProcessIdentity:
    found = identify(process.pid)
    assert found is not None
    return found


def test_this_process_is_alive_and_keeps_its_identity() -> None:
    assert current().pid == os.getpid()
    assert current() == current()
    assert is_alive(current())


def test_end_kills_the_process_and_returns_only_when_it_is_gone(sleeper: subprocess.Popen[bytes]) -> None:
    identity = identity_of(sleeper)
    assert end(identity) is True
    assert not is_alive(identity)
    assert sleeper.wait() == -signal.SIGKILL


def test_a_killed_process_that_nobody_waited_for_counts_as_gone(sleeper: subprocess.Popen[bytes]) -> None:
    identity = identity_of(sleeper)
    end(identity)
    # The zombie still has its pid: this test is its parent and has not waited.
    os.kill(sleeper.pid, 0)
    assert identify(sleeper.pid) is None


def test_a_process_that_took_the_pid_is_neither_alive_nor_ended(sleeper: subprocess.Popen[bytes]) -> None:
    predecessor = ProcessIdentity(sleeper.pid, "another start")
    assert not is_alive(predecessor)
    assert end(predecessor) is False
    assert sleeper.poll() is None


def test_a_number_that_only_a_thread_has_by_now_is_that_of_no_process() -> None:
    """The pid of a process that is gone may go to a thread of another one."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        assert thread.native_id not in (None, os.getpid())
        assert not end(ProcessIdentity(thread.native_id or 0, "of one that is gone"))
    finally:
        over.set()
        thread.join()


def test_ending_twice_says_that_it_was_gone(sleeper: subprocess.Popen[bytes]) -> None:
    identity = identity_of(sleeper)
    end(identity)
    sleeper.wait()
    assert end(identity) is False


def test_ps_tells_the_same_story_where_there_is_no_proc(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: os.PathLike[str]
) -> None:
    monkeypatch.setattr(processes, "_PROC", tmp_path)
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    identity = identity_of(sleeper)
    assert identity == identity_of(sleeper)
    assert end(identity) is True
    assert identify(sleeper.pid) is None


def test_a_process_that_may_not_be_killed_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(processes, "_kill", refuse)
    with pytest.raises(Unavailable, match="may not be ended"):
        end(current())
