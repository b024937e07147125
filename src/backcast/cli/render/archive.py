"""What was copied into an archive, in one line, and by which runs."""

from __future__ import annotations

from rich.console import RenderableType

from backcast.cli.render.layout import QUIET, STRONG, page, text
from backcast.cli.render.words import count, some
from backcast.model.archiving import ArchiveReport


def render_archive(report: ArchiveReport) -> RenderableType:
    if not report.runs:
        return text(("nothing to copy", STRONG), f": {report.table} has it all")
    partitions = len({each.partition for each in report.copied})
    offsets = sum(each.end - each.start for each in report.copied)
    spelled = [f"{each.partition}={each.start}..{each.end}" for each in report.copied]
    return page(
        text((f"{count(report.records, 'record')} copied", STRONG), f" from topic {report.topic} to {report.table}"),
        text((f"{count(offsets, 'offset')} of {count(partitions, 'partition')}: {some(spelled)}", QUIET)),
        text((f"by {', '.join(report.runs)}", QUIET)),
    )
