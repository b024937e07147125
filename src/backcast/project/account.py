"""On whose account this process works, as the operating system says it: no variable can tell otherwise."""

from __future__ import annotations

import os
import pwd
import socket


def os_user() -> str:
    """The name of the account that this process belongs to, or its number when it has no name."""
    uid = os.getuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def account() -> str:
    """`ana@host-1`."""
    return f"{os_user()}@{socket.gethostname()}"
