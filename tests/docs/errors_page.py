"""`docs/errors.md`, made from the error tree: `python -m tests.docs.errors_page` writes it."""

from __future__ import annotations

import inspect

from backcast import errors
from tests.docs.pages import ROOT

PAGE = ROOT / "docs" / "errors.md"
_AGAIN = {"never": "no", "after-change": "after removing the cause", "again": "yes, the same command"}
_HEAD = """\
# Errors

An error goes to stderr as `error[CODE]: what happened`, with a `hint:` that says what to do, if possible a command.
Under `--json` it is one document on stdout, `{"error": {"code": ..., "message": ..., "hint": ..., "exit_code": ...}}`.
Codes are stable.

This page is made from `src/backcast/errors.py` by `python -m tests.docs.errors_page`.

| Code | Exit | Repeat it? | Meaning |
|---|---|---|---|
"""


def kinds() -> list[type[errors.BackcastError]]:
    """Every error class, the base first, each followed by its children."""
    found: list[type[errors.BackcastError]] = []

    def collect(kind: type[errors.BackcastError]) -> None:
        found.append(kind)
        for child in kind.__subclasses__():
            if child.__module__ == errors.__name__:
                collect(child)

    collect(errors.BackcastError)
    return found


def meanings() -> dict[str, str]:
    """Class name to the words beside it in the tree of the module's docstring."""
    found = {"BackcastError": "a bug in Backcast or in user code"}
    for line in inspect.getdoc(errors).splitlines():  # type: ignore[union-attr]
        branch, _, rest = line.partition("── ")
        if rest and branch:
            name, *words = rest.split()
            found[name] = " ".join(words[2:] if words[:1] == ["exit"] else words)
    return found


def page() -> str:
    meaning = meanings()
    rows = [
        f"| `{kind.code}` | {kind.exit_code} | {_AGAIN[kind.retry]} | {meaning[kind.__name__]} |" for kind in kinds()
    ]
    return _HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
