"""Which process is which: a pid alone is reused by the system, a pid with its start time is not."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backcast.errors import Unavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROC = Path("/proc")
_POLL_SECONDS = 0.02
_NO_PROCESS = (errno.ESRCH, errno.ENOENT, errno.EINVAL)
"""Nothing has the number, or a thread of another process: kernels do not agree on how to say that."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process of this machine, for all time. `started` is opaque: compare it, never parse it."""

    pid: int
    started: str


def current() -> ProcessIdentity:
    """This Python process."""
    return _require(os.getpid())


def jvm_identity(spark: SparkSession) -> ProcessIdentity:
    """The driver JVM behind a classic session; it outlives a killed Python process by seconds."""
    jvm: Any = spark.sparkContext._jvm
    return _require(int(jvm.java.lang.ProcessHandle.current().pid()))


def ignore_stops(spark: SparkSession) -> None:
    """From now on the driver JVM does not end when it gets SIGTERM or SIGHUP; it cannot be told to again.

    A service manager signals every process of a service at once: the JVM would stop a query in the middle of a batch
    that this process lets end. It still ends with this process, which holds its standard input.
    """
    jvm: Any = spark.sparkContext._jvm
    kind = getattr(jvm, "sun.misc.Signal")
    ignored = getattr(jvm, "sun.misc.SignalHandler").SIG_IGN
    for name in ("TERM", "HUP"):
        kind.handle(kind(name), ignored)


def identify(pid: int) -> ProcessIdentity | None:
    """The process that has this pid now, or None when none runs. A zombie can do nothing any more: None."""
    started = _started_from_proc(pid) if _PROC.joinpath("self/stat").exists() else _started_from_ps(pid)
    return None if started is None else ProcessIdentity(pid, started)


def is_alive(identity: ProcessIdentity) -> bool:
    """Whether exactly that process still runs, and not merely one that got its pid."""
    return identify(identity.pid) == identity


def end(identity: ProcessIdentity, timeout: float = 30.0) -> bool:
    """Kill that process and wait until it is gone; False when it was gone already. Never hits a successor of its pid.

    Raises Unavailable when it may not be killed or does not go within the timeout.
    """
    try:
        if not _kill(identity):
            return False
    except PermissionError as error:
        raise Unavailable(f"process {identity.pid} may not be ended by this user", pid=identity.pid) from error
    deadline = time.monotonic() + timeout
    while is_alive(identity):
        if time.monotonic() > deadline:
            raise Unavailable(f"process {identity.pid} is still there {timeout:g} s after SIGKILL", pid=identity.pid)
        time.sleep(_POLL_SECONDS)
    return True


def _kill(identity: ProcessIdentity) -> bool:
    """SIGKILL exactly that process. The descriptor comes before the check, so the pid cannot change hands between."""
    if not hasattr(os, "pidfd_open"):
        if not is_alive(identity):
            return False
        os.kill(identity.pid, signal.SIGKILL)
        return True
    try:
        descriptor = os.pidfd_open(identity.pid)
    except OSError as error:
        if error.errno in _NO_PROCESS:
            return False
        raise
    try:
        if not is_alive(identity):
            return False
        signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)


def _require(pid: int) -> ProcessIdentity:
    identity = identify(pid)
    if identity is None:
        raise Unavailable(f"process {pid} is gone", pid=pid)
    return identity


def _started_from_proc(pid: int) -> str | None:
    try:
        stat = _PROC.joinpath(str(pid), "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name in field 2 may hold spaces and brackets; the rest follows its last closing one.
    fields = stat.rpartition(")")[2].split()
    state, ticks = fields[0], fields[19]
    if state in "ZX":
        return None
    # Ticks count from boot, and would repeat after the next one.
    boot = _PROC.joinpath("sys/kernel/random/boot_id").read_text().strip()
    return f"{boot}/{ticks}"


def _started_from_ps(pid: int) -> str | None:
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C"})
    state, _, started = answer.stdout.strip().partition(" ")
    if not started or state.startswith("Z"):
        return None
    return " ".join(started.split())
