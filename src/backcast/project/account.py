"""On whose account this process works, as the operating system says it: no variable can tell otherwise."""

from __future__ import annotations

import os
import pwd
import socket
from pathlib import Path

_LOGIN = Path("/proc/self/loginuid")
_NOBODY = 2**32 - 1


def os_user() -> str:
    """The name of the account that this process belongs to, or its number when it has no name."""
    return _named(os.getuid())


def login_user() -> str | None:
    """The account that somebody logged in with, which no su or sudo changes; None where the kernel does not say."""
    try:
        uid = int(_LOGIN.read_text())
    except (OSError, ValueError):
        return None
    return None if uid == _NOBODY else _named(uid)


def _named(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def account() -> str:
    """`ana@host-1`."""
    return f"{os_user()}@{socket.gethostname()}"
