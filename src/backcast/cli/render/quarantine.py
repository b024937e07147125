"""Records that were set aside: which runs met some, and each with its place and the reason."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from backcast.cli.render.layout import CAREFUL, QUIET, STRONG, columns, command, flexible, page, text
from backcast.cli.render.words import number
from backcast.model.quarantine import QuarantinedRecord, QuarantinedRun
from backcast.model.states import VISIBLE_STATES


def render_quarantined(found: Sequence[QuarantinedRun]) -> RenderableType:
    if not found:
        return page(text("no run has set a record aside"))
    right, shrink = frozenset({"RECORDS", "REJECTED"}), frozenset({"INPUT", "RETRIED BY"})
    table = columns("RUN", "STATE", "RECORDS", "REJECTED", "INPUT", "RETRIED BY", right=right, shrink=shrink)
    for each in found:
        table.add_row(
            text((each.run_id, STRONG)),
            text(each.state),
            text((number(each.records), QUIET if each.retried_by else CAREFUL)),
            text(number(each.rejected) if each.rejected else ""),
            flexible(text(each.input)),
            flexible(text(each.retried_by or "")),
        )
    waiting = [each for each in found if not each.retried_by and each.state in VISIBLE_STATES] or found
    return page(table, command(f"backcast quarantine show {waiting[0].run_id}"))


def render_records(found: Sequence[QuarantinedRecord], limit: int, run_id: str) -> RenderableType:
    if not found:
        return page(text("the run has set no record aside"))
    right, shrink = frozenset({"PARTITION", "OFFSET"}), frozenset({"REASON", "VALUE"})
    table = columns("PARTITION", "OFFSET", "REASON", "VALUE", right=right, shrink=shrink)
    for each in found:
        table.add_row(
            text(str(each.partition)),
            text((number(each.offset), STRONG)),
            flexible(text((each.reason, CAREFUL))),
            flexible(text((each.value or "", QUIET))),
        )
    title = text((", ".join(sorted({each.topic for each in found})), STRONG))
    more = text((f"the first {limit}; --limit shows more", QUIET)) if len(found) == limit else None
    return page(title, text(""), table, more, command(f"backcast quarantine retry {run_id}", label="Once mended"))
