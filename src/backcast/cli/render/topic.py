"""Where a moment, or a window of event time, lies in a topic: one line per partition, and what to do with it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from rich.console import RenderableType

from backcast.cli.render.layout import BAD, CAREFUL, QUIET, STRONG, columns, command, indented, page, text
from backcast.cli.render.window import window_text
from backcast.cli.render.words import count, duration, number
from backcast.model.states import VISIBLE_STATES
from backcast.model.topic_report import HandOver, PartitionSurvey, TopicOffsets, WindowSurvey
from backcast.sources.kafka.spelling import format_ranges


def render_offsets(found: TopicOffsets) -> RenderableType:
    right = ("PARTITION", "LOG START", "OFFSET", "LOG END", "FROM THERE")
    table = columns(*right, "RECORD TIME", right=frozenset(right))
    for each in found.partitions:
        table.add_row(
            text((str(each.partition), STRONG)),
            number(each.log_start),
            text(("-", QUIET)) if each.offset is None else text((number(each.offset), STRONG)),
            number(each.log_end),
            number(each.span),
            text(("", QUIET)) if each.record_time is None else _exact(each.record_time),
        )
    silent = sum(each.offset is None for each in found.partitions)
    return page(
        _title(found.topic, f"at {_exact(found.at)}, {found.isolation}, {found.timestamp_type or 'time type unknown'}"),
        text(""),
        table,
        text(""),
        text((count(len(found.partitions), "partition"), STRONG), f"   {count(found.span, 'offset')} from there"),
        text((f"{count(silent, 'partition')} with no record that late", CAREFUL)) if silent else None,
        text(("producers set the times: later offsets may carry earlier ones", QUIET))
        if found.timestamp_type == "CreateTime"
        else None,
    )


def render_hand_over(found: HandOver) -> RenderableType:
    right = ("PARTITION", "STREAM STARTS AT")
    table = columns(*right, right=frozenset(right))
    for partition, offset in sorted(found.offsets.items()):
        table.add_row(text((str(partition), STRONG)), text((number(offset), STRONG)))
    published = found.state in VISIBLE_STATES
    starts = [f"backcast stream start {each}" for each in found.streams]
    return page(
        _title(found.topic, f"after {found.run_id}, {found.state}"),
        text(""),
        table,
        text(""),
        None if published else text(("not published yet: start the stream after that", CAREFUL)),
        text("startingOffsets  ", (json.dumps(found.starting_offsets), STRONG)),
        command(*starts) if published and starts else None,
    )


def render_window(found: WindowSurvey) -> RenderableType:
    right = ("PARTITION", "FIRST", "LAST", "IN WINDOW", "FOREIGN", "BACKWARD")
    table = columns(*right, "SCANNED", right=frozenset(right))
    for each in found.partitions:
        table.add_row(*_row(each))
    where = "" if found.zone == "UTC" else f" {found.zone}"
    held = format_ranges(found.ranges)
    unreadable = sum(each.unreadable for each in found.partitions)
    how = "to the end of the log" if found.to_end else "as far as the declared slack says; --to-end scans the rest"
    return page(
        _title(found.topic, f"{found.column} in {window_text(found.window, found.zone)}{where}"),
        text(""),
        table,
        text(""),
        text(_totals(found)),
        text((f"scanned {how}", QUIET)),
        text((f"{count(unreadable, 'record')} could not be decoded and may belong", BAD)) if unreadable else None,
        indented(text("offsets  ", (held, STRONG)), above=1) if held else None,
    )


def _row(each: PartitionSurvey) -> tuple[RenderableType, ...]:
    first, last = ("-" if offset is None else number(offset) for offset in (each.first, each.last))
    return (
        text((str(each.partition), STRONG)),
        text((first, STRONG)),
        text((last, STRONG)),
        number(each.matching),
        text((number(each.foreign), CAREFUL if each.foreign else QUIET)),
        text((duration(each.backward_seconds), CAREFUL if each.backward_seconds else QUIET)),
        text((f"{each.scanned.start}..{each.scanned.end}", QUIET)),
    )


def _totals(found: WindowSurvey) -> tuple[str, str]:
    matching, foreign = (sum(getattr(each, name) for each in found.partitions) for name in ("matching", "foreign"))
    return f"{count(matching, 'record')} in the window, {number(foreign)} foreign between them", STRONG


def _title(topic: str, detail: str) -> RenderableType:
    return page(text((topic, STRONG)), indented(text((detail, QUIET))))


def _exact(instant: datetime) -> str:
    """To the millisecond when there is something to say: Kafka knows no finer time."""
    there = instant.astimezone(UTC)
    finer = f".{there.microsecond // 1000:03d}" if there.microsecond else ""
    return f"{there:%Y-%m-%d %H:%M:%S}{finer}Z"
