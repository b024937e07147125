"""What the story prints: chapters, plain sentences, and claims that are checked before they are made."""

from __future__ import annotations

import textwrap

_WIDTH = 80


class ClaimBroken(Exception):
    """Something that the story promises did not happen."""


class Narrator:
    """Prints the story and keeps count of what was proven."""

    def __init__(self) -> None:
        self._chapters = 0
        self.proven = 0

    def part(self, title: str) -> None:
        """Several chapters under one title."""
        print(f"\n\n{title}\n{'#' * len(title)}", flush=True)

    def chapter(self, title: str) -> None:
        self._chapters += 1
        heading = f"{self._chapters}. {title}"
        print(f"\n\n{heading}\n{'=' * len(heading)}", flush=True)

    def say(self, text: str) -> None:
        """A paragraph."""
        print("\n" + textwrap.fill(" ".join(text.split()), _WIDTH), flush=True)

    def show(self, *lines: str) -> None:
        """Lines as they are, indented."""
        print("\n" + "\n".join(f"  {line}" for line in lines), flush=True)

    def prove(self, claim: str, holds: bool, otherwise: str = "") -> None:
        """Make the claim if it holds. Raises ClaimBroken if it does not."""
        if not holds:
            raise ClaimBroken(f"{claim}{': ' if otherwise else ''}{otherwise}")
        self.proven += 1
        print(f"  [proven] {claim}", flush=True)
