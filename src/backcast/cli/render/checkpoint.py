"""A checkpoint as a page: at a glance, and batch by batch."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from rich.console import RenderableType

from backcast.cli.locate import short_path
from backcast.cli.render.layout import (
    BAD,
    CAREFUL,
    QUIET,
    STRONG,
    blocks,
    columns,
    command,
    flexible,
    indented,
    page,
    text,
)
from backcast.cli.render.words import count, number
from backcast.model.checkpoint import Batch, History, Inspection, SourcePosition, StateVersions

_SHOWN_PARTITIONS = 8


def render_inspection(found: Inspection, *, settings: bool = False) -> RenderableType:
    named = found.stream or short_path(Path(found.path))
    formats = ", ".join(f"{name} {each}" for name, each in found.formats.items())
    damaged = text((f"{count(found.damages, 'damage')} found", BAD)) if found.damages else None
    return page(
        text((named, STRONG)),
        indented(text((short_path(Path(found.path)), QUIET))) if found.stream else None,
        blocks(
            [
                ("query", [text(found.query_id) if found.query_id else text(("its id cannot be read", BAD))]),
                ("batches", [*_batches(found)]),
                ("position", position_lines(found.sources) or _not_known(found, "from the start")),
                ("watermark", [text(exact(found.watermark))] if found.watermark else _not_known(found, "none")),
                ("unreadable", [text((each, BAD)) for each in found.unreadable]),
                ("state", [_state(each) for each in found.operators] or [text(("none", QUIET))]),
                ("written", [text(exact(found.last_written))] if found.last_written else []),
                ("format", [text((formats, QUIET))] if formats else []),
                ("settings", _settings(found, everything=settings)),
            ]
        ),
        indented(damaged, above=1) if damaged is not None else None,
        command(f"backcast checkpoint verify {named}") if found.damages else None,
    )


def render_history(found: History) -> RenderableType:
    right = ("BATCH", "RECORDS")
    table = columns(
        "BATCH", "PLANNED", "", "RECORDS", "WATERMARK", "ENDS AT", right=frozenset(right), shrink=frozenset({"ENDS AT"})
    )
    for each in found.batches:
        table.add_row(*_row(each))
    open_ones = sum(each.planned and not each.committed for each in found.batches)
    return page(
        text((short_path(Path(found.path)), STRONG)),
        text(""),
        table if found.batches else text(("no batch yet", QUIET)),
        text(""),
        text((count(len(found.batches), "batch", "batches"), STRONG), f", {number(open_ones)} not committed"),
    )


def exact(moment: datetime) -> str:
    """To the second; milliseconds when there are any."""
    there = moment.astimezone(UTC)
    finer = f".{there.microsecond // 1000:03d}" if there.microsecond // 1000 else ""
    return f"{there:%Y-%m-%d %H:%M:%S}{finer}Z"


def position_lines(sources: tuple[SourcePosition, ...]) -> list[RenderableType]:
    """The next offset of each partition, topic by topic."""
    lines: list[RenderableType] = []
    for each in sources:
        for topic, offsets in (each.topics or {}).items():
            shown = ", ".join(
                f"{partition}={offset}" for partition, offset in list(offsets.items())[:_SHOWN_PARTITIONS]
            )
            more = f" and {len(offsets) - _SHOWN_PARTITIONS} more" if len(offsets) > _SHOWN_PARTITIONS else ""
            lines.append(text((topic, STRONG), f"  {shown}{more}"))
        if each.topics is None:
            lines.append(text((f"source {each.source}  ", STRONG), each.text))
    return lines


def _not_known(found: Inspection, otherwise: str) -> list[RenderableType]:
    return [text(("not known", BAD)) if found.unreadable else text((otherwise, QUIET))]


def _batches(found: Inspection) -> list[RenderableType]:
    planned = "none" if found.planned is None else str(found.planned)
    committed = "none" if found.committed is None else str(found.committed)
    first = text(f"planned {planned}, committed {committed}")
    if found.repeats:
        again = text((f"a restart runs batch {found.next_batch} again, with the same offsets", CAREFUL))
        return [first, again]
    return [first, text((f"a restart goes on with batch {found.next_batch}", QUIET))]


def _state(each: StateVersions) -> RenderableType:
    versions = "no version loads" if each.last is None else f"versions {each.first} to {each.last}"
    stores = "" if len(each.stores) < 2 else f", {len(each.stores)} stores"
    return text(
        (f"operator {each.operator} ", STRONG),
        f"{each.name or 'unknown'}  {each.kind}, {count(each.partitions, 'partition')}{stores}, ",
        (versions, BAD if each.last is None else ""),
    )


def _settings(found: Inspection, *, everything: bool) -> list[RenderableType]:
    if everything:
        return [text(f"{key} = {value}") for key, value in sorted(found.settings.items())]
    shuffle = found.settings.get("spark.sql.shuffle.partitions")
    told = f"{count(len(found.settings), 'setting')} kept; --settings lists them"
    return [text(f"{shuffle} shuffle partitions", (f"; {told}", QUIET))] if shuffle else []


def _row(each: Batch) -> tuple[RenderableType, ...]:
    if each.problem:
        state = text(("damaged", BAD))
    elif not each.planned:
        state = text(("no offsets", BAD))
    else:
        state = text("committed") if each.committed else text(("planned", CAREFUL))
    return (
        text((str(each.number), STRONG)),
        text(("", QUIET)) if each.at is None else text(exact(each.at)[:19]),
        state,
        text(("-", QUIET)) if each.records is None else text(number(each.records)),
        text(("-", QUIET)) if each.watermark is None else text(exact(each.watermark)[:19]),
        flexible(text((each.problem or _ends(each.sources), QUIET))),
    )


def _ends(sources: tuple[SourcePosition, ...]) -> str:
    return "  ".join(
        ",".join(f"{partition}={offset}" for offsets in each.topics.values() for partition, offset in offsets.items())
        if each.topics
        else each.text
        for each in sources
    )
