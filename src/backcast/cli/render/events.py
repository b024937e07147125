"""A run's history, one line per event."""

from __future__ import annotations

import json
import re
from datetime import UTC
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from backcast.cli.render.layout import QUIET, STRONG, text
from backcast.model.run import Event

_HASH = re.compile("[0-9a-f]{64}")
_LONGEST = 60
_NAME = 16
_HIDDEN = {"diff.recorded": {"chunks", "columns", "partitions", "rows", "schema"}}
"""What only machines want to read."""


def render_event(event: Event) -> RenderableType:
    at = f"{event.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
    # The name of a change of state says where it went.
    hidden = {"to"} if event.name.startswith("state.") else _HIDDEN.get(event.name, set())
    told = {key: value for key, value in event.data.items() if key not in hidden and value not in ("", None)}
    data = " ".join(f"{key}={_short(value)}" for key, value in told.items())
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style=QUIET)
    grid.add_column(no_wrap=True, min_width=_NAME, style=STRONG)
    grid.add_column(overflow="fold")
    grid.add_row(at, text(event.name), text(data))
    return grid


def _short(value: Any) -> str:
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    flat = " ".join(written.split())
    if _HASH.fullmatch(flat):
        return flat[:12]
    cut = flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 3]}..."
    return json.dumps(cut, ensure_ascii=False) if isinstance(value, str) and " " in cut else cut
