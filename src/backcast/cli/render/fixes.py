"""What to type so that exactly what was found is planned, or what became of the plans."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.console import RenderableType

from backcast.cli.render.layout import BAD, GOOD, STRONG, command, indented, page, text
from backcast.cli.render.words import count
from backcast.model.gaps import PlannedFix
from backcast.model.request import Request

_SHOWN = 5


def plan_command(request: Request) -> str:
    """The request as one would type it."""
    words = ["backcast", "plan", request.pipeline]
    if request.dates:
        words += ["--dates", ",".join(map(str, request.dates))]
    for option, value in (("--from", request.start), ("--to", request.end), ("--offsets", request.offsets)):
        words += [option, value] if value is not None else []
    words += ["--kind", request.kind.value]
    for option, value in (("--reason", request.reason), ("--ticket", request.ticket)):
        words += [option, value] if value else []
    return shlex.join(words)


def render_fixes(
    requests: Sequence[Request], plans: Sequence[PlannedFix], one_step: str, *, asked: bool
) -> RenderableType | None:
    """`one_step` is the command that plans all of it."""
    if plans:
        return page(*(_planned(each) for each in plans), _next(plans))
    if not requests or asked:
        return None
    commands = [plan_command(each) for each in requests[:_SHOWN]]
    more = len(requests) - _SHOWN
    told = [*commands, *([f"and {count(more, 'plan')} more"] if more > 0 else [])]
    return page(command(*told, label="Fix"), command(one_step, label="Or"))


def _planned(fix: PlannedFix) -> RenderableType:
    if fix.recorded:
        return indented(text(("planned  ", GOOD), (fix.run_id, STRONG), f"  {count(fix.chunks, 'chunk')}"), above=1)
    return indented(text(("refused  ", BAD), fix.problem), above=1)


def _next(plans: Sequence[PlannedFix]) -> RenderableType | None:
    recorded = [f"backcast run {each.run_id}" for each in plans if each.recorded]
    return command(*recorded[:_SHOWN]) if recorded else None
