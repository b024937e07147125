"""The columns that moved and a few of the rows that differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from backcast.cli.render.layout import BAD, CAREFUL, GOOD, QUIET, STRONG, columns, flexible, text
from backcast.cli.render.words import number
from backcast.model.diff import Cell, ColumnDiff, Comparison, RowSample, Values

_LONGEST = 60
_NAME = 6
"""So much of a column's name is shown in any case."""
_MARKS = {
    "changed": ("~", CAREFUL),
    "added": ("+", GOOD),
    "removed": ("-", BAD),
    "format_only": ("≈", QUIET),
    "tolerated": ("≈", QUIET),
}
_WORDS = {"format_only": "format only", "tolerated": "within tolerance"}


def schema_lines(sentences: Sequence[str]) -> list[RenderableType]:
    return [text((each, CAREFUL)) for each in sentences]


def columns_table(moved: Sequence[ColumnDiff], sides: tuple[str, str]) -> RenderableType:
    """One line for each column; what moved as a whole stands below those that are numbers."""
    keyed = any(each.changed is not None for each in moved)
    formats = any(each.format_only for each in moved)
    near = any(each.tolerated for each in moved)
    heads = [*(["CHANGED"] if keyed else []), *(["FORMAT"] if formats else []), *(["NEAR"] if near else [])]
    right = frozenset({*heads, "NULLS", *sides, "DELTA"})
    table = columns("COLUMN", *heads, "NULLS", "", *sides, "DELTA", right=right, shrink=frozenset({"COLUMN", *sides}))
    table.columns[0].min_width = min(max(len(each.name) for each in moved), _NAME)
    for each in moved:
        counts = [
            *([_count(each.changed, CAREFUL)] if keyed else []),
            *([_count(each.format_only, "")] if formats else []),
            *([_count(each.tolerated, "")] if near else []),
        ]
        moves = _moves(each)
        head = (flexible(text((each.name, STRONG))), *counts, _nulls(each))
        table.add_row(*head, *(moves[0] if moves else ("", "", "", "")))
        for move in moves[1:]:
            table.add_row(*("" for _ in head), *move)
    return table


def _count(value: int | None, style: str) -> Text:
    return text((number(value or 0), style if value else QUIET))


def _nulls(each: ColumnDiff) -> Text:
    if each.base is None or each.stage is None:
        return text("")
    before, after = each.base.nulls, each.stage.nulls
    if before == after:
        return text((number(before), QUIET))
    return text(f"{number(before)} → {number(after)}")


def _moves(each: ColumnDiff) -> list[tuple[RenderableType, ...]]:
    """Sum, mean, least and greatest, as far as they are not what they were."""
    if each.base is None or each.stage is None:
        return []
    return [
        (text((name, QUIET)), _cut(before), _cut(after), _delta(before, after))
        for name in ("sum", "mean", "min", "max")
        if (before := _value(each.base, name)) != (after := _value(each.stage, name))
    ]


def _cut(value: str | None) -> Text:
    """A number is shown whole. A moment loses its end where there is no room: the days come first."""
    cell = text(shown(value))
    if as_number(value) is None:
        return flexible(cell)
    cell.no_wrap = True
    return cell


def _value(values: Values, name: str) -> str | None:
    found: str | None = getattr(values, name)
    return found


def _delta(before: str | None, after: str | None) -> Text:
    old, new = as_number(before), as_number(after)
    if old is None or new is None:
        return text("")
    moved = new - old
    share = f" ({moved / abs(old):+.1%})" if old else ""
    return text((f"{'+' if moved > 0 else ''}{shown(str(moved))}{share}", BAD if moved < 0 else GOOD))


def as_number(value: str | None) -> Decimal | None:
    try:
        number_ = None if value is None else Decimal(value)
    except InvalidOperation:
        return None
    return number_ if number_ is not None and number_.is_finite() else None


def shown(value: str | None) -> str:
    """A number with separators and no more digits than help; anything else as it is."""
    found = as_number(value)
    if found is None:
        return "-" if value is None else value
    rounded = f"{found:,.2f}" if abs(found) >= 1 or not found else f"{found:.4g}"
    return rounded.removesuffix(".00")


def samples_table(found: Comparison) -> RenderableType:
    """Changed rows one cell a line; added and removed ones with all they have."""
    several = len(found.partitions) > 1
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold", ratio=2)
    grid.add_column(overflow="fold", ratio=3)
    for sample in found.samples:
        mark, style = _MARKS[sample.change]
        where = [f"{name}={_short(value)}" for name, value in sample.key.items()]
        told = ", ".join(where) or (sample.chunk if several else "row")
        times = f" {number(sample.times)} times" if sample.times > 1 else ""
        word = _WORDS.get(sample.change, sample.change)
        cells = list(_cells(sample))
        head = text((f"{mark} {word}{times}", style))
        grid.add_row(head, text((told, STRONG)), cells[0] if cells else text(""))
        for cell in cells[1:]:
            grid.add_row("", "", cell)
    return grid


def _cells(sample: RowSample) -> Iterable[Text]:
    if sample.change in ("added", "removed"):
        one = text()
        for position, cell in enumerate(sample.cells):
            value = cell.after if sample.change == "added" else cell.before
            one.append_text(text(("  " if position else "", ""), (f"{cell.column}=", QUIET), _short(value)))
        yield one
        return
    for cell in sample.cells:
        yield _change(cell)


def _change(cell: Cell) -> Text:
    return text((f"{cell.column} ", QUIET), (_short(cell.before), BAD), (" → ", QUIET), (_short(cell.after), GOOD))


def _short(value: str | None) -> str:
    if value is None:
        return "null"
    one_line = value.replace("\n", "↵") if value else "''"
    return one_line if len(one_line) <= _LONGEST else one_line[: _LONGEST - 1] + "…"
