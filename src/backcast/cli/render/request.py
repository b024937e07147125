"""What was found about request files."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from backcast.cli.render.layout import BAD, GOOD, QUIET, STRONG, indented, page, text
from backcast.cli.render.plan import findings_grid
from backcast.cli.render.words import count
from backcast.model.report import RequestCheck


def render_checks(checks: Sequence[RequestCheck]) -> RenderableType:
    wrong = sum(1 for each in checks if each.refused)
    parts = [part for each in checks for part in _one(each)]
    if len(checks) > 1:
        ending = f"{wrong} of {count(len(checks), 'request')} refused" if wrong else f"{len(checks)} requests, all good"
        parts.append(text((ending, BAD if wrong else GOOD)))
    return page(*parts)


def _one(check: RequestCheck) -> list[RenderableType]:
    outcome = ("refused", BAD) if check.refused else ("good", GOOD)
    days = "" if check.days is None else f", {count(round(check.days), 'day')}"
    said = f"{check.request.pipeline}{days}: {check.request.reason or 'no reason'}"
    lines: list[RenderableType] = [
        text((check.file, STRONG), "  ", outcome),
        indented(text((said, QUIET))),
    ]
    return [*lines, indented(findings_grid(check.findings))] if check.findings else lines
