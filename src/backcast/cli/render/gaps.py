"""What a dataset lacks, and what would add exactly that."""

from __future__ import annotations

from rich.console import RenderableType

from backcast.cli.render.fixes import render_fixes
from backcast.cli.render.layout import BAD, CAREFUL, GOOD, QUIET, STRONG, blocks, page, text
from backcast.cli.render.window import window_text
from backcast.cli.render.words import count, number
from backcast.model.calendar import Week
from backcast.model.gaps import Fate, Gaps
from backcast.model.health import Gap
from backcast.model.log import span
from backcast.sources.kafka.spelling import format_ranges

_SHOWN = 20
_FATES = {
    Fate.THERE: "the topic has records there",
    Fate.EMPTY: "nothing is there in the topic either",
    Fate.GONE: "the topic no longer has all of them, so nobody can say",
    Fate.UNKNOWN: "the topic was not asked, so nobody can say",
}


def render_gaps(found: Gaps, *, asked: bool = False) -> RenderableType:
    word = ("COMPLETE", GOOD) if found.sound else ("GAPS", BAD)
    return page(
        text((found.dataset, STRONG), "  ", word, (f"  {found.table} at version {found.version}", QUIET)),
        text(""),
        blocks(
            [
                ("rows", _rows(found)),
                ("missing", _missing(found)),
                ("hours", _places(found.hours, "hour", found)),
                ("offsets", _holes(found)),
                ("against", _against(found)),
                ("left out", [text((each, CAREFUL)) for each in found.notes]),
            ]
        ),
        render_fixes(found.requests, found.plans, _one_step(found), asked=asked),
    )


def _rows(found: Gaps) -> list[RenderableType]:
    if found.window is None:
        return ["none"]
    where = "" if found.zone == "UTC" else f" {found.zone}"
    span = f"{window_text(found.window, found.zone)}{where}"
    return [f"{number(found.rows)} in {span} ({count(found.pieces, found.grain.value)})"]


def _missing(found: Gaps) -> list[RenderableType]:
    lines = _places(found.gaps, found.grain.value, found) or [text(("none", GOOD))]
    if found.closed:
        why = "the sources have none either" if found.against and not found.against.problem else _closed(found)
        lines.append(text((f"{count(found.closed, found.grain.value)} without rows are no gap: {why}", QUIET)))
    return lines if found.window else []


def _closed(found: Gaps) -> str:
    week = "weekends or " if found.calendar is Week.WEEKDAYS else ""
    return f"{week}closed days"


def _places(gaps: tuple[Gap, ...], noun: str, found: Gaps) -> list[RenderableType]:
    if not gaps:
        return []
    missing = sum(each.pieces for each in gaps)
    lines: list[RenderableType] = [text((f"{count(missing, noun)} without a row, in {count(len(gaps), 'place')}", BAD))]
    for each in gaps[:_SHOWN]:
        several = f"  ({count(each.pieces, noun)})" if each.pieces > 1 else ""
        lines.append(f"{window_text(each.window, found.zone)}{several}")
    return [*lines, *_more(len(gaps))]


def _holes(found: Gaps) -> list[RenderableType]:
    if not found.positions:
        return []
    lines: list[RenderableType] = [] if found.holes else [text(("no holes", GOOD))]
    for fate in Fate:
        ranges = tuple(each.range for each in found.holes if each.fate is fate)
        if not ranges:
            continue
        offsets = sum(each.span for each in ranges)
        style = GOOD if fate is Fate.EMPTY else BAD if fate is Fate.THERE else CAREFUL
        lines.append(text((f"{count(offsets, 'offset')} that no row carries: {_FATES[fate]}", style)))
        lines.append(format_ranges(ranges[:_SHOWN]))
        lines += _more(len(ranges))
    if found.pending:
        told = f"{count(span(found.pending), 'offset')} not read yet: {format_ranges(found.pending[:_SHOWN])}"
        lines += [text((told, QUIET)), *_more(len(found.pending))]
    if found.between_rows:
        style = CAREFUL if found.unanswered else QUIET
        lines.append(text((f"only holes between two rows were looked for: {found.between_rows}", style)))
    return lines


def _against(found: Gaps) -> list[RenderableType]:
    against = found.against
    if against is None:
        return []
    if against.problem:
        return [text((f"{against.pipeline} cannot be judged: {against.problem}", CAREFUL))]
    rows = count(against.expected, "row")
    if not against.differing:
        same = "as many in every" if not found.gaps else "as many in every other"
        return [text((f"{against.pipeline} would make {rows} now: {same} {found.grain.value}", GOOD))]
    lines: list[RenderableType] = [
        text(f"{against.pipeline} would make {rows} now"),
        text((f"{count(len(against.differing), found.grain.value)} with another number of rows", BAD)),
    ]
    for each in against.differing[:_SHOWN]:
        told = f"  {number(each.rows)}, expected {number(each.expected)}"
        lines.append(text((window_text(each.window, found.zone), CAREFUL), told))
    return [*lines, *_more(len(against.differing))]


def _more(found: int) -> list[RenderableType]:
    return [text((f"and {number(found - _SHOWN)} more: --json has them", QUIET))] if found > _SHOWN else []


def _one_step(found: Gaps) -> str:
    against = "" if found.against is None else f" --against {found.against.pipeline}"
    return f"backcast gaps {found.dataset}{against} --plan"
