"""The `backcast` command."""

from __future__ import annotations

import sys

from backcast.cli.overview import answer


def main(argv: list[str] | None = None) -> None:
    """Run one command. Returns on success and exits with the error's code otherwise."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    page = answer(arguments)
    if page is not None:
        print(page, end="")
        return
    from backcast.cli.dispatch import dispatch

    code = dispatch(arguments)
    if code:
        sys.exit(code)
