"""The documents as data: pages, fenced blocks, typed commands with the output they show, links, anchors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\((?P<target>[^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Typed:
    """A line that a page shows after a `$`, and the output it shows below."""

    page: str
    line: int
    command: str
    shown: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def typed_on(page: Path, *languages: str) -> list[Typed]:
    """Every typed line in fenced blocks of these languages, in order."""
    text = page.read_text(encoding="utf-8")
    found = []
    for block in _FENCE.finditer(text):
        if block["language"] not in languages:
            continue
        first = text.count("\n", 0, block.start("body")) + 1
        lines = [line.removeprefix(block["indent"]) for line in block["body"].splitlines()]
        starts = [number for number, line in enumerate(lines) if line.startswith("$ ")]
        for start, end in pairwise([*starts, len(lines)]):
            found.append(Typed(name_of(page), first + start, lines[start][2:], tuple(lines[start + 1 : end])))
    return found


def runbooks(*names: str) -> list[Path]:
    return [ROOT / "docs" / "runbooks" / f"{name}.md" for name in names]


def files_on(page: Path) -> dict[str, str]:
    """Name to text of every file that the page shows: blocks whose first line is `# name`. The first one counts."""
    bodies = (dedent(block["body"]) for block in _FENCE.finditer(page.read_text(encoding="utf-8")))
    named = (re.match(r"# ([\w/.-]+\.\w+)\n", body) for body in bodies)
    found = [(name[1], name.string[name.end() :]) for name in named if name]
    return dict(reversed(found))


def links_of(page: Path) -> list[str]:
    """Link targets outside of code."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    return [match["target"] for match in _LINK.finditer(re.sub(r"`[^`\n]*`", "", text))]


def anchors_of(page: Path) -> set[str]:
    """What a heading can be linked by."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
