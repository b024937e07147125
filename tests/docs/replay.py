"""Types what a page shows and compares what comes out, leaving out what differs from run to run."""

from __future__ import annotations

import io
import os
import re
import runpy
import shlex
import shutil
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.cli.app import main
from backcast.demo.shell import in_process
from backcast.project.api import open_project
from tests.docs.pages import Typed, files_on, typed_on

if TYPE_CHECKING:
    from backcast.control import ControlPlane

_RUN = re.compile(r"\b[a-z_]+-\d{8}-[0-9a-f]{6}\b")
_VARIABLE = [
    (_RUN, "RUN"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "QUERY"),
    (re.compile(r"\b\d{8}T\d{6}Z\b"), "STAMP"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{3})?Z?(?! UTC)"), "TIME"),
    (re.compile(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{16}\b"), "KEY"),
    (re.compile(r"\b[\w.-]+@[\w.-]+\b"), "ACCOUNT"),
    (re.compile(r"\bevent \d+\b|\b\d+ events\b"), "EVENTS"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\dZ| UTC)"), "TIME"),
    (re.compile(r"(?<!\d )\b\d\d:\d\d:\d\d UTC"), "TIME"),
    (re.compile(r"\b(now|\d+ (s|min|h) ago)\b"), "AGO"),
    (re.compile(r"\b\d+ days( \d+ h)? left\b"), "LEFT"),
    (re.compile(r"\b\d{13,}\b"), "VERSION"),
    (re.compile(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{6,12}\b|\b[a-f]{6}\b"), "HASH"),
    (re.compile(r"\b[\d.,]+ (B|KiB|MiB)\b"), "SIZE"),
    (re.compile(r"\b\d+\.\d+\.\d+(?= at |$|\s*\n)"), "NUMBER"),
]


class Differs(AssertionError):
    """What a page shows is not what comes out."""


@dataclass
class Shell:
    """Folder, exit code and run names of one reader who follows the pages."""

    folder: Path
    code: int = 0
    names: dict[str, str] = field(default_factory=dict)
    """Run names on the pages to those of this replay."""
    control: ControlPlane | None = None

    def close(self) -> None:
        if self.control is not None:
            self.control.world.close()

    def look_again(self) -> ControlPlane:
        """The project as its files are now."""
        self.close()
        self.control = open_project(self.folder)
        return self.control

    def write_files(self, page: Path) -> None:
        """Those that the page shows."""
        for name, text in files_on(page).items():
            (self.folder / name).write_text(text)

    def follow(self, typed: Typed) -> None:
        """Raises Differs when a shown line does not come out, or the command fails and the page does not say so."""
        out = self._answer(shlex.split(typed.command), typed)
        missing = first_missing("\n".join(typed.shown), out)
        if missing:
            raise Differs(f"{typed}: `{typed.command}` does not print\n{missing}\nbut\n{out}")

    def _answer(self, words: list[str], typed: Typed) -> str:
        match words:
            case ["cd", name]:
                self.folder /= name
                return ""
            case ["echo", "$?"]:
                return f"{self.code}\n"
            case ["rm", name]:
                (self.folder / name).unlink()
                return ""
            case ["cp", source, target]:
                shutil.copy(self.folder / source, self.folder / target)
                self.code = 0
                return ""
            case ["python", script, *arguments]:
                return self._printed(lambda: self._script(script, arguments))
            case ["backcast", *arguments]:
                return self._printed(lambda: self._command([self._real(word) for word in arguments]))
        raise Differs(f"{typed}: nobody knows how to type {typed.command!r}")

    def _command(self, arguments: list[str]) -> None:
        self.code = 0
        try:
            if (self.folder / "backcast.yaml").exists():
                self.control = self.control or open_project(self.folder)
                with in_process(self.control):
                    main(arguments)
            else:
                main(arguments)
        except SystemExit as ended:
            self.code = int(ended.code or 0)

    def _script(self, script: str, arguments: list[str]) -> None:
        self.code, before = 0, sys.argv
        sys.argv = [script, *arguments]
        try:
            runpy.run_path(script, run_name="__main__")
        finally:
            sys.argv = before

    def _real(self, word: str) -> str:
        """A run that a page names for the first time is the newest one."""
        if _RUN.fullmatch(word) and self.control is not None:
            self.names.setdefault(word, self.control.list(limit=1)[0].run_id)
        return self.names.get(word, word)

    def _printed(self, action: object) -> str:
        before, text = Path.cwd(), io.StringIO()
        os.chdir(self.folder)
        try:
            with redirect_stdout(text), redirect_stderr(text):
                action()  # type: ignore[operator]
        finally:
            os.chdir(before)
        return text.getvalue()


def follow(shell: Shell, pages: list[Path]) -> None:
    for page in pages:
        examples = typed_on(page, "console")
        assert examples, page
        for position, typed in enumerate(examples):
            shell.follow(typed)
            says_why = [each.command for each in examples[position + 1 : position + 2]] == ["echo $?"]
            assert shell.code == 0 or says_why or typed.command == "echo $?", f"{typed} ends with {shell.code}"


def first_missing(shown: str, out: str) -> str:
    """The first part of the shown text, cut at its `...`, that does not follow in the output; empty when all do."""
    rest = stable(out)
    for part in re.split(r"\.\.\.(?:\n|$)", shown):
        wanted = stable(part)
        position = rest.find(wanted)
        if position < 0:
            return part
        rest = rest[position + len(wanted) :]
    return ""


def stable(text: str) -> str:
    """The text without what differs from run to run; where lines break does not matter either."""
    for pattern, word in _VARIABLE:
        text = pattern.sub(word, text)
    return " ".join(text.split())
