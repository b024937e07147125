"""The first page: `backcast`, `backcast --help` and `backcast --version`.

A command line parser and a terminal library cost ten times the start of Python; this page needs neither.
"""

from __future__ import annotations

import os
import sys

from backcast import __version__
from backcast.cli.catalogue import GROUPS

_HELP = ({"--help"}, {"-h"}, {"help"}, set[str]())
_OPTIONS = {
    "--project DIR": "Folder with backcast.yaml; default: here or above.",
    "--profile NAME": "Profile of backcast.yaml, such as dev or prod.",
    "--json": "Print one JSON document on stdout, also for errors.",
    "--no-color": "No colours; so does the variable NO_COLOR.",
    "--verbose": "Tracebacks with unexpected errors.",
}


def answer(arguments: list[str]) -> str | None:
    """The text to print when the arguments ask for nothing but the first page or the version."""
    flags = {each for each in arguments if each != "--no-color"}
    if flags == {"--version"}:
        return f"backcast {__version__}\n"
    if flags not in _HELP:
        return None
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and "--no-color" not in arguments
    return _page("\x1b[1m", "\x1b[0m") if colour else _page("", "")


def _page(bold: str, plain: str) -> str:
    lines = [
        f"{bold}backcast{plain} {__version__}: restate history in Spark tables.",
        "Planned, staged, validated, published in one commit, reversible.",
        "",
        "  backcast COMMAND [OPTIONS]       backcast COMMAND --help",
    ]
    for title, commands in GROUPS.items():
        width = max(10, *map(len, commands))
        lines += ["", f"{bold}{title}{plain}", *(f"  {name:<{width}} {text}" for name, text in commands.items())]
    lines += [
        "",
        f"{bold}Options of every command{plain}",
        *(f"  {name:<16} {text}" for name, text in _OPTIONS.items()),
    ]
    lines += [
        "",
        f"{bold}Exit codes{plain}",
        "  0 ok   2 invalid request   3 refused by a check   4 conflict",
        "  5 failed, the same command continues   6 outcome unknown   1 bug",
        "",
        f"{bold}An example{plain}",
        '  backcast plan sla --from 2025-01-01 --to 2025-02-01 --reason "time zone bug"',
    ]
    return "\n".join(lines) + "\n"
