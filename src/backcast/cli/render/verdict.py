"""The verdict of a run, check by check."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table

from backcast.cli.render.layout import BAD, GOOD, QUIET, STRONG, command, indented, page, section, text, tick
from backcast.cli.render.words import count, moment
from backcast.model.verdict import Check, Verdict


def render_verdict(verdict: Verdict) -> RenderableType:
    outcome = ("accepted", GOOD) if verdict.accepted else ("rejected", BAD)
    wrong = sum(1 for each in verdict.checks if not each.passed)
    numbers = f"{count(verdict.rows, 'row')} in {count(len(verdict.partitions), 'chunk')}, {moment(verdict.at)}"
    following = [f"backcast diff {verdict.run_id}"]
    if verdict.accepted:
        following.append(f"backcast publish {verdict.run_id}")
    return page(
        text((verdict.run_id, STRONG), "  ", outcome),
        indented(text((numbers, QUIET))),
        section(f"{count(wrong, 'check')} failed" if wrong else "Checks", checks_table(verdict.checks)),
        command(*following),
    )


def checks_table(checks: tuple[Check, ...]) -> RenderableType:
    """Failed checks first, otherwise in the order in which they were made."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for each in sorted(checks, key=lambda check: check.passed):
        grid.add_row(tick(each.passed), text((each.name, STRONG if not each.passed else "")), text(each.detail))
    return grid
