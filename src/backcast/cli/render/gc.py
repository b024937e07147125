"""What gc dropped or would drop, and what it keeps and why."""

from __future__ import annotations

from rich.console import RenderableType

from backcast.cli.render.layout import QUIET, STRONG, command, indented, page, section, text
from backcast.cli.render.words import count, some
from backcast.model.report import GcItem, GcReport


def render_gc(report: GcReport) -> RenderableType:
    items = report.items
    if not items:
        heading = "nothing to drop"
    elif report.dry_run:
        heading = f"{count(len(items), 'run')} would be dropped"
    else:
        files = sum(each.files_deleted or 0 for each in items)
        heading = f"{count(len(items), 'run')} dropped, {count(files, 'file')} deleted"
    return page(
        text((heading, STRONG)),
        *(_item(each) for each in items),
        text(f"{count(report.swept, 'file')} of earlier runs deleted") if report.swept else None,
        section("Kept", page(*(text(line) for line in report.kept))) if report.kept else None,
        command("backcast gc") if report.dry_run and items else None,
    )


def _item(item: GcItem) -> RenderableType:
    deleted = [] if item.files_deleted is None else [f"{count(item.files_deleted, 'file')} deleted"]
    refs = text((f"{count(len(item.refs), 'ref')}: {some(item.refs)}", QUIET))
    heading = text((item.run_id, STRONG), (f"  {item.table}", QUIET))
    return indented(page(heading, text(item.reason), refs, *deleted), above=1)
