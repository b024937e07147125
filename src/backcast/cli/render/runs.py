"""The list of runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import RenderableType

from backcast.cli.render.layout import QUIET, STATE_STYLES, STRONG, columns, command, flexible, page, text
from backcast.cli.render.words import ago
from backcast.model.run import Run


def render_runs(runs: Sequence[Run], limit: int, now: datetime) -> RenderableType:
    if not runs:
        return page(text("no runs"), command("backcast plan PIPELINE --from DAY --to DAY --reason ..."))
    table = columns("RUN", "STATE", "CHANGED", "DATASET", "REASON", shrink=frozenset({"DATASET", "REASON"}))
    for each in runs:
        reason = " ".join(filter(None, (each.ticket, each.reason))) or each.kind
        table.add_row(
            text((each.run_id, STRONG)),
            text((each.state, STATE_STYLES[each.state])),
            text((ago(each.updated_at, now), QUIET)),
            flexible(text(each.dataset)),
            flexible(text(" ".join(reason.split()))),
        )
    more = text((f"the newest {limit}; --limit shows more", QUIET)) if len(runs) == limit else None
    return page(table, more)
