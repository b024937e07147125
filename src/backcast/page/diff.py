"""A comparison as a page: the numbers that matter, then chunks, columns and rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from backcast.model.diff import Cell, ColumnDiff, Compared, ComparedSide, Comparison, Diff, DiffLate, RowSample
from backcast.page.charts import Bar, bars, columns, stacked
from backcast.page.markup import Content, Html, Tone, badge, code, facts, join, page, paragraph, section, table, tag
from backcast.page.markup import tiles as big_numbers

_TONES: dict[str, Tone] = {
    "same": "quiet",
    "changed": "careful",
    "added": "good",
    "removed": "bad",
    "format_only": "info",
    "tolerated": "info",
}
_WORDS = {"format_only": "format only", "tolerated": "within tolerance"}
_MOST_CHUNKS = 400
_MOST_BARS = 20


def diff_page(found: Diff) -> str:
    about = facts(
        [("run", code(found.run_id)), ("base", code(found.base or "empty table")), ("stage", code(found.staged))]
    )
    subtitle = "what publishing this run would change" if found.publishable else "what the stage of this run changes"
    return page(f"Diff of {found.run_id}", *comparison_parts(found, about, late=found.late), subtitle=subtitle)


def compared_page(found: Compared) -> str:
    one = found.left.dataset == found.right.dataset
    title = found.left.dataset if one else f"{found.left.dataset} against {found.right.dataset}"
    about = facts([("from", _side(found.left)), ("to", _side(found.right))])
    return page(f"Comparison of {title}", *comparison_parts(found, about, ("from", "to")))


def comparison_parts(
    found: Comparison, about: Content = None, sides: tuple[str, str] = ("base", "stage"), late: DiffLate | None = None
) -> Iterable[Html]:
    """Everything below the title, for this page or as a part of another."""
    yield join(about, _tiles(found), late_paragraph(late))
    changes = found.columns_changed.sentences()
    if changes:
        yield section("Schema", tag("ul", *(tag("li", each) for each in changes)))
    yield _chunks(found, sides, {} if late is None else late.chunks)
    if found.columns:
        yield _columns(found, sides)
    if found.samples:
        yield _rows(found)
    if found.notes:
        yield section("Notes", tag("ul", *(tag("li", each) for each in found.notes)))


def late_paragraph(late: DiffLate | None) -> Html | None:
    """What the live stream dropped as late, of a run that replays one."""
    if late is None:
        return None
    return paragraph(f"Late: {late.sentence()}.", tone="careful" if late.chunks or late.because else "quiet")


def _tiles(found: Comparison) -> Html:
    base, stage = found.total
    numbers: list[tuple[str, Content, Tone]] = [("rows before", base, "plain"), ("rows after", stage, "plain")]
    rows = found.rows
    if rows is None:
        return big_numbers([*numbers, ("rows that differ", 0 if not _differing(found) else "?", "quiet")])
    for name in ("added", "removed", "changed"):
        amount: int = getattr(rows, name)
        numbers.append((name, amount, _TONES[name] if amount else "quiet"))
    numbers += [("in format only", rows.format_only, "info")] if rows.format_only else []
    numbers += [("within tolerance", rows.tolerated, "info")] if rows.tolerated else []
    whole = max(base, stage) - rows.differing - rows.format_only - rows.tolerated
    parts = [
        Bar("unchanged", max(whole, 0), "quiet"),
        *(Bar(name, getattr(rows, name), _TONES[name]) for name in ("changed", "added", "removed")),
        Bar("format only", rows.format_only, "info"),
        Bar("within tolerance", rows.tolerated, "info"),
    ]
    return join(big_numbers(numbers), tag("div", stacked(parts, label="rows by what became of them"), class_="share"))


def _differing(found: Comparison) -> int:
    return len(found.partitions) - found.count("same")


def _chunks(found: Comparison, sides: tuple[str, str], late: Mapping[str, int]) -> Html:
    differing = [each for each in found.partitions if each.status != "same"]
    same = len(found.partitions) - len(differing)
    chart = None
    if 1 < len(found.partitions) <= _MOST_CHUNKS:
        groups = [
            (each.chunk, [Bar(sides[0], each.base.rows, "plain"), Bar(sides[1], each.stage.rows, _TONES[each.status])])
            for each in found.partitions
        ]
        chart = columns(groups, label="rows of each chunk, before and after")
    rows = [
        (
            each.chunk,
            each.base.rows,
            each.stage.rows,
            f"{each.stage.rows - each.base.rows:+,}" if each.stage.rows != each.base.rows else "0",
            *(getattr(each.rows, name) if each.rows else None for name in ("added", "removed", "changed")),
            *([late.get(each.chunk, 0)] if late else []),
            code(f"{each.base.short()} → {each.stage.short()}"),
            badge(each.status, _TONES[each.status]),
        )
        for each in differing[:_MOST_CHUNKS]
    ]
    numbers = (*sides, "delta", "added", "removed", "changed", *(["late"] if late else []))
    note = f"{len(differing):,} of {len(found.partitions):,} differ; {same:,} are the same, row for row"
    left_out = len(differing) - len(rows)
    return section(
        "Chunks",
        chart,
        table(("chunk", *numbers, "digest", ""), rows, right=range(1, len(numbers) + 1))
        if rows
        else paragraph("No chunk differs.", tone="good"),
        paragraph(f"{left_out:,} more differ.", tone="quiet") if left_out else None,
        note=note,
    )


def _columns(found: Comparison, sides: tuple[str, str]) -> Html:
    changed = sorted((each for each in found.columns if each.changed), key=lambda each: -(each.changed or 0))
    chart = None
    if changed:
        chart = bars(
            [Bar(each.name, each.changed or 0, "careful") for each in changed[:_MOST_BARS]],
            label="changed cells by column",
        )
    rows = [row for each in found.columns if each.moved for row in _column(each)]
    heads = ("column", "type", "changed", "format only", "near", "nulls", "", *sides, "delta")
    note = "changes of rows that both sides have by key; sums and the like over the chunks that differ"
    return section("Columns", chart, table(heads, rows, right=(2, 3, 4, 5, 7, 8, 9)), note=note)


def _column(each: ColumnDiff) -> Iterable[Sequence[Content]]:
    nulls = ""
    moves: list[tuple[Content, ...]] = []
    if each.base is not None and each.stage is not None:
        before, after = each.base.nulls, each.stage.nulls
        nulls = f"{before:,}" if before == after else f"{before:,} → {after:,}"
        for name in ("sum", "mean", "min", "max"):
            old, new = getattr(each.base, name), getattr(each.stage, name)
            if old != new:
                moves.append((name, _shown(old), _shown(new), _delta(old, new)))
    head = (tag("b", each.name), each.type, each.changed, each.format_only or None, each.tolerated or None, nulls)
    yield (*head, *(moves[0] if moves else (None,) * 4))
    for move in moves[1:]:
        yield (*(None for _ in head), *move)


def _rows(found: Comparison) -> Html:
    """Changed rows cell by cell; added and removed ones with all they have."""
    rows = []
    for sample in found.samples:
        where = ", ".join(f"{name}={_text(value)}" for name, value in sample.key.items())
        word = _WORDS.get(sample.change, sample.change)
        times = f" {sample.times:,} times" if sample.times > 1 else ""
        rows.append(
            (badge(word + times, _TONES[sample.change]), tag("span", sample.chunk, class_="n"), where, _cells(sample))
        )
    matched = found.rows
    by = "as multisets, a row as often as it occurs" if matched is None or matched.by == "rows" else "by key"
    return section("Rows", table(("", "chunk", "key", "values"), rows), note=f"a few of each kind, matched {by}")


def _cells(sample: RowSample) -> Html:
    if sample.change in ("added", "removed"):
        added = sample.change == "added"
        told = [
            join(tag("span", f"{each.column}=", class_="tone-quiet"), _text(each.after if added else each.before))
            for each in sample.cells
        ]
        return join(*told, by=", ")
    return join(*(_change(each) for each in sample.cells), by=Html("<br>"))


def _change(cell: Cell) -> Html:
    old, new = tag("del", _text(cell.before)), tag("ins", _text(cell.after))
    return join(tag("span", f"{cell.column} ", class_="tone-quiet"), old, " → ", new)


def _side(side: ComparedSide) -> Html:
    version = f"version {side.version}" if side.version else "empty table"
    return join(code(side.table), " ", ", ".join((version, *side.where)))


def _text(value: str | None) -> str:
    return "null" if value is None else value or "''"


def _number(value: str | None) -> Decimal | None:
    try:
        found = None if value is None else Decimal(value)
    except InvalidOperation:
        return None
    return found if found is not None and found.is_finite() else None


def _shown(value: str | None) -> str:
    found = _number(value)
    if found is None:
        return "" if value is None else value
    return (f"{found:,.2f}" if abs(found) >= 1 or not found else f"{found:.4g}").removesuffix(".00")


def _delta(before: str | None, after: str | None) -> Html | None:
    old, new = _number(before), _number(after)
    if old is None or new is None:
        return None
    moved = new - old
    share = f" ({moved / abs(old):+.1%})" if old else ""
    sign = "+" if moved > 0 else ""
    return tag("span", f"{sign}{_shown(str(moved))}{share}", class_="tone-bad" if moved < 0 else "tone-good")
