"""What `init` wrote, and how to go on."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from backcast.cli.render.layout import GOOD, QUIET, STRONG, TYPE, indented, page, text


def render_init(place: str, written: Sequence[str], kept: Sequence[str]) -> RenderableType:
    steps = [
        *([f"cd {place}"] if place != "." else []),
        "python seed.py",
        "backcast doctor",
        'backcast plan daily --from 2026-01-01 --to 2026-02-01 --reason "refunds"',
    ]
    return page(
        text(("a small project in ", STRONG), (place, STRONG)),
        *(indented(text(("✓ ", GOOD), name)) for name in written),
        *(indented(text((f"· {name} was there and stays as it is", QUIET))) for name in kept),
        indented(text(("Next", STRONG)), above=1),
        *(indented(text((f"  {step}", TYPE))) for step in steps),
    )
