"""Two sides, chunk by chunk, column by column, row by row: what changes is shown, what does not is counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.table import Table

from backcast.cli.render.diff_rows import columns_table, samples_table, schema_lines
from backcast.cli.render.layout import (
    BAD,
    CAREFUL,
    GOOD,
    QUIET,
    STRONG,
    columns,
    command,
    flexible,
    indented,
    page,
    section,
    text,
)
from backcast.cli.render.words import count, number, signed
from backcast.model.diff import Compared, ComparedSide, Comparison, Diff, DiffLate, DiffStatus, PartitionDiff, RowCounts

_SHOWN = 40
_DIGITS = 6
_STYLES = {"same": QUIET, "changed": CAREFUL, "added": GOOD, "removed": BAD}


def render_diff(diff: Diff, *, everything: bool = False) -> RenderableType:
    base, stage = diff.base or "empty table", diff.staged
    return page(
        text((diff.run_id, STRONG)),
        indented(text((f"base {base}, stage {stage}", QUIET))),
        *_comparison(diff, ("BASE", "STAGE"), everything, diff.late),
        command(f"backcast publish {diff.run_id}") if diff.publishable else None,
    )


def render_compared(found: Compared, *, everything: bool = False) -> RenderableType:
    one = found.left.dataset == found.right.dataset
    title = found.left.dataset if one else f"{found.left.dataset} against {found.right.dataset}"
    return page(
        text((title, STRONG)),
        indented(text((f"from {_side(found.left, named=not one)}", QUIET))),
        indented(text((f"to   {_side(found.right, named=not one)}", QUIET))),
        *_comparison(found, ("FROM", "TO"), everything),
    )


def _side(side: ComparedSide, *, named: bool) -> str:
    told = [side.dataset] if named else []
    told.append(f"version {side.version}" if side.version else "empty table")
    return ", ".join([*told, *side.where])


def _comparison(
    found: Comparison, sides: tuple[str, str], everything: bool, late: DiffLate | None = None
) -> Iterable[RenderableType | None]:
    changes = found.columns_changed.sentences()
    if changes:
        yield section("Schema", page(*schema_lines(changes)))
    yield text("")
    yield _chunks(found, sides, everything, {} if late is None else late.chunks)
    yield text("")
    yield _totals(found)
    if late is not None:
        yield text((f"late: {late.sentence()}", CAREFUL if late.chunks or late.because else QUIET))
    shown = [each for each in found.columns if everything or each.moved]
    if shown:
        yield section("Columns", columns_table(shown, sides))
    if found.samples:
        yield section("Rows", samples_table(found))
    for note in found.notes:
        yield indented(text((note, QUIET)), above=1)


def _chunks(found: Comparison, sides: tuple[str, str], everything: bool, late: Mapping[str, int]) -> RenderableType:
    rows = found.rows
    counted = [name for name in ("added", "removed", "changed") if rows is not None]
    counted += ["format_only"] if rows is not None and rows.format_only else []
    counted += ["tolerated"] if rows is not None and rows.tolerated else []
    heads = [_HEADS[name] for name in counted]
    right = frozenset({*sides, "DELTA", "LATE", *heads})
    shrink = frozenset({"CHUNK"})
    # Digests tell whether a chunk differs; where rows were counted, the counts tell more.
    told = [*(heads or ["DIGEST"]), *(["LATE"] if late else [])]
    table = columns("CHUNK", *sides, "DELTA", *told, "", right=right, shrink=shrink)
    hidden = _fill(table, found.partitions, counted, everything, late)
    more = text((f"{count(hidden, 'more chunk')} differ; --all shows them", CAREFUL)) if hidden else None
    return page(table, more)


_HEADS = {"added": "ADDED", "removed": "REMOVED", "changed": "CHANGED", "format_only": "FORMAT", "tolerated": "NEAR"}


def _fill(
    table: Table,
    partitions: Sequence[PartitionDiff],
    counted: Sequence[str],
    everything: bool,
    late: Mapping[str, int],
) -> int:
    """Rows of the table; the number of differing chunks that were left out."""
    shown = hidden = 0
    for same, group in groupby(partitions, key=lambda each: each.status == "same"):
        members = list(group)
        if same and not everything:
            if shown < _SHOWN:
                table.add_row(*_folded(members, (len(counted) or 1) + bool(late)))
            continue
        keep = len(members) if everything else max(0, _SHOWN - shown)
        for each in members[:keep]:
            table.add_row(*_row(each, counted, late))
        shown += len(members[:keep])
        hidden += len(members[keep:])
    return hidden


def _row(each: PartitionDiff, counted: Sequence[str], late: Mapping[str, int]) -> Iterable[RenderableType]:
    delta = each.stage.rows - each.base.rows
    old, new = (side.short()[:_DIGITS] if side.rows else "-" for side in (each.base, each.stage))
    digest = old if each.status == "same" else f"{old} → {new}"
    return (
        flexible(text((each.chunk, STRONG))),
        number(each.base.rows),
        number(each.stage.rows),
        text((signed(delta), BAD if delta < 0 else GOOD if delta else QUIET)),
        *([_amount(each.rows, name) for name in counted] or [text((digest, QUIET))]),
        *([_late(late.get(each.chunk, 0))] if late else []),
        text((each.status, _STYLES[each.status])),
    )


_COUNT_STYLES = {"added": GOOD, "removed": BAD, "changed": CAREFUL}


def _amount(rows: RowCounts | None, name: str) -> RenderableType:
    amount = 0 if rows is None else getattr(rows, name)
    return text((number(amount), _COUNT_STYLES.get(name, "") if amount else QUIET))


def _late(amount: int) -> RenderableType:
    return text((number(amount), CAREFUL if amount else QUIET))


def _folded(members: Sequence[PartitionDiff], counted: int) -> Iterable[RenderableType]:
    rows = number(sum(each.base.rows for each in members))
    first, last = members[0].chunk, members[-1].chunk
    span, note = (first, "") if len(members) == 1 else (f"{first} .. {last}", count(len(members), "chunk"))
    told = [note, *("" for _ in range(counted - 1))]
    return (text((each, QUIET)) for each in (span, rows, rows, "0", *told, "same"))


def _totals(found: Comparison) -> RenderableType:
    base, stage = found.total
    words: tuple[DiffStatus, ...] = ("changed", "added", "removed", "same")
    told = ", ".join(f"{number(amount)} {word}" for word in words if (amount := found.count(word)))
    rows = f"{number(base)} → {number(stage)} rows ({signed(stage - base)})"
    lines = [text((f"{count(len(found.partitions), 'chunk')}: {told or 'none has rows'}", STRONG), f"   {rows}")]
    if found.rows is not None:
        how = f"by key {', '.join(found.rows.key)}" if found.rows.by == "key" else "as multisets, without a key"
        lines.append(text((f"rows: {found.summary()}", STRONG), (f"   {how}", QUIET)))
    return page(*lines)
