"""Errors as text: code and message, the next thing to do, and where the details are."""

from __future__ import annotations

from rich.text import Text

from backcast.cli.render.layout import BAD, QUIET, text
from backcast.errors import BackcastError

_WITH_LOG = frozenset({1, 5, 6})
"""Exit codes of errors that a log can explain; the others are about what was asked."""


def error_lines(error: BackcastError) -> list[Text]:
    lines = [text((f"error[{error.code}]: ", BAD), error.message)]
    if error.hint:
        lines.append(text(("  hint: ", "bold"), error.hint))
    log = error.attributes.get("log")
    if log and error.exit_code in _WITH_LOG:
        lines.append(text(("  log:  ", QUIET), (str(log), QUIET)))
    return lines
