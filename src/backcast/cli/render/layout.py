"""Building blocks of a page: labelled blocks of lines, marks, commands. Works at 80 columns and without colour."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from backcast.cli.render.words import clean

_LABEL = 10

GOOD, BAD, CAREFUL, QUIET, STRONG, TYPE = "green", "bold red", "yellow", "dim", "bold", "bold cyan"

STATE_STYLES = {
    "planned": "cyan",
    "approved": "cyan",
    "running": "bold cyan",
    "failed": BAD,
    "staged": "cyan",
    "review": CAREFUL,
    "accepted": GOOD,
    "rejected": BAD,
    "publishing": "bold yellow",
    "published": "bold green",
    "superseded": QUIET,
    "undoing": "bold yellow",
    "undone": "magenta",
    "cancelling": CAREFUL,
    "cancelled": QUIET,
}


def text(*parts: str | tuple[str, str]) -> Text:
    """Parts with styles; text from elsewhere is cleaned."""
    built = Text()
    for part in parts:
        if isinstance(part, tuple):
            built.append(clean(part[0]), style=part[1])
        else:
            built.append(clean(part))
    return built


def blocks(rows: Iterable[tuple[str, list[RenderableType]]]) -> RenderableType:
    """Label and lines, one block under the other; blocks without lines are left out."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(width=_LABEL, style=QUIET, no_wrap=True)
    grid.add_column(overflow="fold")
    for label, lines in rows:
        for position, line in enumerate(lines):
            grid.add_row(label if position == 0 else "", line)
    return indented(grid)


def indented(body: RenderableType, *, above: int = 0) -> RenderableType:
    return Padding(body, (above, 0, 0, 2), expand=False)


def flexible(line: Text) -> Text:
    """A cell that gives up width before others do, and shows that something was cut."""
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def command(*lines: str, label: str = "Next") -> RenderableType:
    """What to type next, one command per line."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style=STRONG, no_wrap=True)
    grid.add_column(overflow="fold")
    for position, line in enumerate(lines):
        grid.add_row(label if position == 0 else "", text((line, TYPE)))
    return indented(grid, above=1)


def section(heading: str, body: RenderableType) -> RenderableType:
    return Group(indented(text((heading, STRONG)), above=1), indented(body))


def tick(passed: bool) -> Text:
    return Text("✓", GOOD) if passed else Text("✗", BAD)


def page(*parts: RenderableType | None) -> RenderableType:
    return Group(*(part for part in parts if part is not None))


def columns(*names: str, right: frozenset[str] = frozenset(), shrink: frozenset[str] = frozenset()) -> Table:
    """A table without frame, for lists that are read by eye and by grep. `shrink` names the columns that may be cut."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=QUIET, show_edge=False)
    for name in names:
        table.add_column(name, justify="right" if name in right else "left", no_wrap=name not in shrink)
    return table
