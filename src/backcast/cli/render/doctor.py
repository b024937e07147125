"""What works, what does not, what to do."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table

from backcast.cli.render.layout import BAD, GOOD, STRONG, page, text, tick
from backcast.cli.render.words import count
from backcast.model.report import Probe


def render_probes(probes: Sequence[Probe]) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for each in probes:
        body: list[RenderableType] = [text(each.detail)]
        if each.remedy:
            body.append(text(("do: ", STRONG), each.remedy))
        grid.add_row(tick(each.ok), text((each.name, "" if each.ok else STRONG)), Group(*body))
    broken = sum(1 for each in probes if not each.ok)
    outcome = (f"{broken} of {count(len(probes), 'probe')} failed", BAD) if broken else ("all is well", GOOD)
    return page(grid, text(""), text(outcome))
