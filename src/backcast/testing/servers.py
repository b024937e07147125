"""What every private server has in common: a free port on loopback, and an end when its parent process ends."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

SMALL_JVM = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true")
"""A server of a test does little and not for long."""


def free_port() -> int:
    """A port that nobody listens on now; another process may take it before it is used."""
    return free_ports(1)[0]


def free_ports(number: int) -> list[int]:
    """The same for several, no two of which are equal."""
    with ExitStack() as open_probes:
        probes = [open_probes.enter_context(socket.socket()) for _ in range(number)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


def dying_with_parent(signal_name: str) -> list[str]:
    """What stands before a command, so that a process that is killed leaves no server behind.

    Nothing where the system cannot see to it.
    """
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", signal_name, "--"] if setpriv else []


def java() -> str:
    """The same Java that Spark takes."""
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"


def start_java(log: Path, *arguments: str, cwd: Path) -> subprocess.Popen[bytes]:
    """A small JVM that dies with this process; what it prints goes to the log, which is started anew."""
    command = [*dying_with_parent("KILL"), java(), *SMALL_JVM, *arguments]
    with log.open("wb") as output:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=cwd)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a server whose data nobody needs any more."""
    process.kill()
    process.wait()
