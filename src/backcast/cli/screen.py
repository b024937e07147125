"""Where answers and errors go: rendered text or one JSON document on stdout, errors and progress on stderr."""

from __future__ import annotations

import io
import json as jsonlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from backcast.cli.render.error import error_lines

if TYPE_CHECKING:
    from rich.console import RenderableType

    from backcast.errors import BackcastError


class _Terminal(Console):
    """Rich ends the process on a broken pipe; the dispatcher decides about exit codes here."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Screen:
    """One command's output. Under `json` nothing but one document reaches stdout, and stderr stays silent."""

    def __init__(self, *, json: bool = False, no_color: bool = False, verbose: bool = False) -> None:
        self.json = json
        self.verbose = verbose
        self.out = _terminal(sys.stdout, no_color)
        self.err = _terminal(sys.stderr, no_color)

    def show(self, document: Any, *renderables: RenderableType) -> None:
        """The document under `--json`, else what it was rendered to."""
        if self.json:
            self.write_json(document)
            return
        if self.out.is_terminal:
            self.out.print(*renderables, sep="\n")
            return
        with self.out.capture() as capture:
            self.out.print(*renderables, sep="\n")
        # Filling up to the width is for terminals; in files and pipes it is noise.
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in capture.get().splitlines())

    def write_json(self, document: Any, *, indent: int | None = 2) -> None:
        value = [each.as_json() for each in document] if isinstance(document, list | tuple) else document
        plain = value.as_json() if hasattr(value, "as_json") else value
        sys.stdout.write(jsonlib.dumps(plain, indent=indent, ensure_ascii=False) + "\n")

    def note(self, text: str) -> None:
        """A line beside the answer; silent under `--json`."""
        if not self.json:
            self.err.print(text, style="dim", soft_wrap=not self.err.is_terminal)

    def fail(self, error: BackcastError, trace: str = "") -> int:
        """Print the error and give its exit code."""
        shown = trace or str(error.attributes.pop("traceback", ""))
        if self.json:
            self.write_json({"error": error.as_dict()})
        else:
            self._print_error(error_lines(error))
        if self.verbose and shown:
            sys.stderr.write(shown.rstrip() + "\n")
        return error.exit_code

    def stop(self, exit_code: int, hint: str) -> int:
        """Say that a signal ended the command."""
        if self.json:
            self.write_json({"error": {"code": "stopped", "message": "stopped", "hint": hint, "exit_code": exit_code}})
        else:
            self.note(f"stopped; {hint}" if hint else "stopped")
        return exit_code

    def _print_error(self, lines: Sequence[RenderableType]) -> None:
        self.flush()
        for line in lines:
            self.err.print(line, soft_wrap=not self.err.is_terminal)

    def flush(self) -> None:
        sys.stdout.flush()


def _terminal(stream: Any, no_color: bool) -> Console:
    if isinstance(stream, io.TextIOWrapper):
        # A terminal that cannot show a tick must not turn an answer into an exception.
        stream.reconfigure(errors="replace")
    return _Terminal(
        file=stream, highlight=False, markup=False, emoji=False, no_color=no_color or None, legacy_windows=False
    )
