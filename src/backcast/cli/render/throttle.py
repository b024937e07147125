"""What holds a run back, and who changed it."""

from __future__ import annotations

from datetime import datetime

from rich.console import RenderableType

from backcast.cli.render.layout import CAREFUL, QUIET, STATE_STYLES, STRONG, blocks, page, text
from backcast.cli.render.words import ago, moment
from backcast.model.hours import Hours
from backcast.model.throttled import Throttled

NOTHING = "nothing holds it back: jobs follow each other at once"


def render_throttled(found: Throttled, now: datetime) -> RenderableType:
    return page(
        text((found.run_id, STRONG), "  ", (found.state.upper(), STATE_STYLES[found.state])),
        blocks(
            [
                ("throttle", [found.in_force.told() or NOTHING, *_closed(found, now)]),
                ("planned", [found.planned.told() or NOTHING] if found.changes else []),
                ("changed", _changes(found, now)),
            ]
        ),
    )


def throttle_lines(found: Throttled | None, now: datetime) -> list[RenderableType]:
    """For a page about the run: what is in force, and who changed it last."""
    if found is None:
        return []
    told = found.in_force.told()
    if not told and not found.changes:
        return []
    return [told or NOTHING, *_closed(found, now), *_changes(found, now)[-1:]]


def _closed(found: Throttled, now: datetime) -> list[RenderableType]:
    """That its hours have not begun."""
    opens = None if found.in_force.hours is None else Hours.parse(found.in_force.hours).next(now)
    return [] if opens is None else [text((f"no job begins before {moment(opens)}", CAREFUL))]


def _changes(found: Throttled, now: datetime) -> list[RenderableType]:
    return [text(each.told(), (f"  by {each.by}, {ago(each.at, now)}", QUIET)) for each in found.changes]
