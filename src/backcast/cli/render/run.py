"""What `run --detach` says before it returns."""

from __future__ import annotations

from rich.console import RenderableType

from backcast.cli.render.layout import GOOD, STRONG, blocks, command, page, text


def render_detached(run_id: str, pid: int, log: str) -> RenderableType:
    return page(
        text((run_id, STRONG), ("  started in the background", GOOD)),
        blocks([("process", [str(pid)]), ("log", [text(log)])]),
        command(f"backcast wait {run_id}"),
    )
