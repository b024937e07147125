"""The chunks of a run as one strip of marks, however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions
from rich.text import Text

from backcast.cli.render.layout import BAD, GOOD, QUIET
from backcast.cli.render.words import count, number

_MARKS = {"#": ("■", GOOD), ">": ("▶", "bold cyan"), "x": ("✗", BAD), ".": ("·", QUIET), ":": ("▫", QUIET)}
_NAMES = {"#": "staged", ">": "running", "x": "failed", ".": "pending", ":": "held back"}
_LINES = 3


@dataclass(frozen=True, slots=True)
class ChunkStrip:
    """One mark per chunk; where they do not fit three lines, one mark per span, and the worst of the span shows."""

    letters: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        width = max(10, options.max_width)
        span = -(-len(self.letters) // (width * _LINES))
        marks = merged(self.letters, span)
        for start in range(0, len(marks), width):
            line = Text()
            for letter in marks[start : start + width]:
                line.append(*_MARKS[letter])
            yield line
        yield legend(self.letters, span)


def merged(letters: str, span: int) -> str:
    """Each span of letters as one: failed before running, and staged only when all of it is."""
    return "".join(_worst(letters[start : start + span]) for start in range(0, len(letters), span))


def legend(letters: str, span: int) -> Text:
    line = Text()
    for letter in "#>x.:":
        if found := letters.count(letter):
            line.append(*_MARKS[letter])
            line.append(f" {number(found)} {_NAMES[letter]}   ")
    if span > 1:
        line.append(f"(one mark: {count(span, 'chunk')})", QUIET)
    line.rstrip()
    return line


def _worst(letters: str) -> str:
    for letter in "x>":
        if letter in letters:
            return letter
    return letters[0] if len(set(letters)) == 1 else "."
