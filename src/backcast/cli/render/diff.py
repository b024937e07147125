"""Base against stage, chunk by chunk: what changes is shown, what does not is counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.table import Table

from backcast.cli.render.layout import BAD, CAREFUL, GOOD, QUIET, STRONG, columns, command, indented, page, text
from backcast.cli.render.words import count, number, signed
from backcast.model.diff import Diff, DiffStatus, PartitionDiff

_SHOWN = 40
_DIGITS = 6
_STYLES = {"same": QUIET, "changed": CAREFUL, "added": GOOD, "removed": BAD}


def render_diff(diff: Diff, *, everything: bool = False) -> RenderableType:
    base, stage = diff.base or "empty table", diff.staged
    table = columns("CHUNK", "BASE", "STAGE", "DELTA", "DIGEST", "", right=frozenset({"BASE", "STAGE", "DELTA"}))
    hidden = _fill(table, diff.partitions, everything)
    return page(
        text((diff.run_id, STRONG)),
        indented(text((f"base {base}, stage {stage}", QUIET))),
        text(""),
        table,
        text((f"{count(hidden, 'more chunk')} differ; --all shows them", CAREFUL)) if hidden else None,
        text(""),
        _totals(diff),
        command(f"backcast publish {diff.run_id}") if diff.publishable else None,
    )


def _fill(table: Table, partitions: Sequence[PartitionDiff], everything: bool) -> int:
    """Rows of the table; the number of differing chunks that were left out."""
    shown = hidden = 0
    for same, group in groupby(partitions, key=lambda each: each.status == "same"):
        members = list(group)
        if same and not everything:
            if shown < _SHOWN:
                table.add_row(*_folded(members))
            continue
        keep = len(members) if everything else max(0, _SHOWN - shown)
        for each in members[:keep]:
            table.add_row(*_row(each))
        shown += len(members[:keep])
        hidden += len(members[keep:])
    return hidden


def _row(each: PartitionDiff) -> Iterable[RenderableType]:
    delta = each.stage.rows - each.base.rows
    old, new = (side.short()[:_DIGITS] if side.rows else "-" for side in (each.base, each.stage))
    digest = old if each.status == "same" else f"{old} → {new}"
    return (
        text((each.chunk, STRONG)),
        number(each.base.rows),
        number(each.stage.rows),
        text((signed(delta), BAD if delta < 0 else GOOD if delta else QUIET)),
        text((digest, QUIET)),
        text((each.status, _STYLES[each.status])),
    )


def _folded(members: Sequence[PartitionDiff]) -> Iterable[RenderableType]:
    rows = number(sum(each.base.rows for each in members))
    first, last = members[0].chunk, members[-1].chunk
    span, note = (first, "") if len(members) == 1 else (f"{first} .. {last}", count(len(members), "chunk"))
    return (text((each, QUIET)) for each in (span, rows, rows, "0", note, "same"))


def _totals(diff: Diff) -> RenderableType:
    base = sum(each.base.rows for each in diff.partitions)
    stage = sum(each.stage.rows for each in diff.partitions)
    words: tuple[DiffStatus, ...] = ("changed", "added", "removed", "same")
    found = ", ".join(f"{number(amount)} {word}" for word in words if (amount := diff.count(word)))
    rows = f"{number(base)} → {number(stage)} rows ({signed(stage - base)})"
    return text((f"{count(len(diff.partitions), 'chunk')}: {found}", STRONG), f"   {rows}")
