"""This machine, as a lease names it."""

from __future__ import annotations

import socket
from pathlib import Path


def host_identity() -> str:
    """This machine, this boot and this pid namespace: only with the same one does a pid mean the same process."""
    parts = [socket.gethostname()]
    try:
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    except OSError:
        # Not Linux: the start times that go with the pids are wall clock times, so the name is enough.
        return parts[0]
    return "/".join(parts)


def rebooted_since(host: str) -> bool:
    """Whether that holder ran on this machine before its last start: then nothing of it can be left."""
    then, now = host.split("/"), host_identity().split("/")
    return len(then) == len(now) == 3 and then[0] == now[0] and then[1] != now[1]
