"""What a stream left out of its table: piece by piece, why, and what would add exactly that."""

from __future__ import annotations

from rich.console import RenderableType

from backcast.cli.render.fixes import render_fixes
from backcast.cli.render.layout import BAD, CAREFUL, GOOD, QUIET, STRONG, columns, indented, page, text
from backcast.cli.render.window import window_text
from backcast.cli.render.words import count, number
from backcast.model.late import Lateness, LatePiece, LateReport

_SHOWN = 20
_HOW = {
    "position": "rows are traced to records by the offsets that they carry",
    "key": "rows are traced to records by their key",
    "pieces": "a row is made of several records: pieces of time were compared, and all their records counted",
}


def render_late(found: LateReport, *, asked: bool = False) -> RenderableType:
    word = _word(found)
    return page(
        text((found.stream, STRONG), "  ", word, (f"  {found.table} at version {found.version}", QUIET)),
        indented(text((_about(found), QUIET))),
        text(""),
        _table(found) if found.pieces else text((f"the table has what {found.topic} has", GOOD)),
        text("") if found.pieces else None,
        *(text(each) for each in _sentences(found)),
        render_fixes(found.requests, found.plans, _one_step(found), asked=asked),
    )


def _word(found: LateReport) -> tuple[str, str]:
    if not found.sound:
        return "ROWS LEFT OUT", BAD
    return ("NOTHING LEFT OUT", GOOD) if not found.pieces else ("STILL TO COME", CAREFUL)


def _about(found: LateReport) -> str:
    mark = "no watermark" if found.watermark is None else f"watermark {found.watermark:%Y-%m-%d %H:%M:%S}Z"
    where = "" if found.zone == "UTC" else f" {found.zone}"
    return f"{window_text(found.window, found.zone)}{where}, batch {number(found.batch)}, {mark}"


def _table(found: LateReport) -> RenderableType:
    """What is nowhere met is no column."""
    rare = {"UNKNOWN": found.total(Lateness.UNKNOWN), "SURPLUS": sum(each.removed for each in found.pieces)}
    right = [name for name in _COLUMNS if rare.get(name, 1)]
    table = columns(found.grain.value.upper(), *right, right=frozenset(right))
    for each in found.pieces[:_SHOWN]:
        counts = ((int(getattr(each, _COLUMNS[name][0])), _COLUMNS[name][1]) for name in right)
        table.add_row(
            text((_piece(each, found.zone), STRONG)),
            *(text((number(value), style if value else QUIET)) for value, style in counts),
        )
    return table


_COLUMNS = {
    "LATE": ("late", BAD),
    "PENDING": ("pending", CAREFUL),
    "MISSING": ("missing", BAD),
    "UNKNOWN": ("unknown", CAREFUL),
    "ADD": ("added", ""),
    "CHANGE": ("changed", ""),
    "SURPLUS": ("removed", CAREFUL),
}


def _piece(each: LatePiece, zone: str) -> str:
    first = window_text(each.window, zone).partition(" .. ")[0]
    return f"{first} open" if each.is_open else first


def _sentences(found: LateReport) -> list[tuple[str, str]]:
    told: list[tuple[str, str]] = []
    if len(found.pieces) > _SHOWN:
        told.append((f"and {number(len(found.pieces) - _SHOWN)} more: --json has them", QUIET))
    noun = "record" if found.by == "pieces" else "row"
    if late := found.total(Lateness.LATE):
        told.append((f"{count(late, noun)} came after the watermark that was in force when they were read", BAD))
    told += _by_spark(found)
    if pending := found.total(Lateness.PENDING):
        told.append((f"{count(pending, noun)} not read by a committed batch yet", CAREFUL))
    if missing := found.total(Lateness.MISSING):
        told.append((f"{count(missing, 'row')} not explained by the watermark: read in time", BAD))
    if unknown := found.total(Lateness.UNKNOWN):
        told.append((f"{count(unknown, noun)} read before batch {number(found.oldest)}, the oldest on record", CAREFUL))
    if found.pieces:
        told.append((_HOW[found.by], QUIET))
    return [*told, *((each, CAREFUL) for each in found.notes)]


def _by_spark(found: LateReport) -> list[tuple[str, str]]:
    """Beside our number, which is another for good reasons."""
    spark = found.by_spark
    if spark is None or not (spark.rows or found.total(Lateness.LATE)):
        return []
    span = f"batch {number(spark.first)}" if spark.first == spark.last else f"batches {spark.first:,} to {spark.last:,}"
    why = "it counts groups where it adds records up before it looks, and every window, also a mended one"
    return [(f"Spark's own count of {span} is {number(spark.rows)}: {why}", QUIET)]


def _one_step(found: LateReport) -> str:
    return f"backcast late {found.stream} --plan"
