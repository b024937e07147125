"""Streams: one with its newest batches, and the list of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.console import RenderableType

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
from backcast.cli.render.words import ago, count, duration, moment, number
from backcast.model.live import LiveBatch, StreamPosition, StreamStatus, UnderWay
from backcast.model.stream_backfill import RESUMED, StreamBackfill

_STYLES = {
    "running": "bold green",
    "starting": "bold cyan",
    "stopping": CAREFUL,
    "stopped": "cyan",
    "failed": BAD,
    "died": BAD,
    "never started": QUIET,
    "external": QUIET,
}


def render_stream(status: StreamStatus, now: datetime) -> RenderableType:
    live = status.live
    head = text((status.name, STRONG), "  ", (status.state, _STYLES[status.state]), (_since(status, now), QUIET))
    rows: list[tuple[str, list[RenderableType]]] = [
        ("from", [text(f"topic {status.topic}")]),
        ("to", [text(f"{status.dataset} ({status.table})")]),
        ("by", [text(f"pipeline {status.pipeline}" + ("" if live is None else f" {live.version}"))]),
        ("checkpoint", [text(status.checkpoint)]),
        ("process", _process(status)),
        ("under way", _under_way(status.under_way)),
        ("position", _position(status, now)),
        ("why", [text((live.detail, BAD))] if live is not None and live.detail and status.state == "failed" else []),
    ]
    return page(head, blocks(rows), _batches(status.batches, now), _next(status))


def _since(status: StreamStatus, now: datetime) -> str:
    if status.live is None or status.external:
        return ""
    if status.state == "running":
        return f"  for {duration((now - status.live.started_at).total_seconds())}"
    return f"  {ago(status.live.changed_at, now)}"


def _next(status: StreamStatus) -> RenderableType | None:
    return command(status.next) if status.next else None


def _process(status: StreamStatus) -> list[RenderableType]:
    if status.lease is None:
        return [text("somebody else's")] if status.external else []
    holder = status.lease.holder
    return [text(f"{holder.owner} ({holder.process})" + ("" if status.alive else ", which is gone"))]


def _under_way(found: UnderWay | None) -> list[RenderableType]:
    """A command of several steps that is not over, and whether anybody works on it."""
    if found is None:
        return []
    told: list[RenderableType] = [text(found.what + (", which has stopped it" if found.stands else ""))]
    if not found.alive:
        # What has stopped the stream is what to type next, anyway.
        told.append(text(("nobody works on it now", CAREFUL), "" if found.stands else f": {found.again}"))
    return told


def _position(status: StreamStatus, now: datetime) -> list[RenderableType]:
    """Behind the newest batch that landed, or that the checkpoint of somebody else's stream has committed."""
    if status.external:
        return _outside(status.position, status.unknown, now)
    batch = next((each for each in status.batches if each.landed), None)
    if batch is None:
        return []
    ends = ", ".join(f"{each.partition}={each.end}" for each in batch.offsets)
    lag = f", {count(batch.lag, 'record')} behind then" if batch.log_end else ""
    lines: list[RenderableType] = [text(f"batch {batch.batch}: {ends}{lag}")]
    if batch.watermark is not None:
        lines.append(text(f"watermark {moment(batch.watermark)}"))
    return lines


def _outside(found: StreamPosition | None, unknown: str, now: datetime) -> list[RenderableType]:
    if found is None:
        return [text(("not known: ", CAREFUL), unknown)] if unknown else []
    ends = ", ".join(f"{partition}={end}" for partition, end in sorted(found.ends.items()))
    told: list[RenderableType] = [
        text(f"batch {found.batch}: {ends}, begun {ago(found.begun, now)}, by its checkpoint")
    ]
    return told if found.watermark is None else [*told, text(f"watermark {moment(found.watermark)}")]


def _batches(batches: Sequence[LiveBatch], now: datetime) -> RenderableType | None:
    if not batches:
        return None
    right = frozenset({"BATCH", "IN", "OUT", "LATE", "ASIDE", "LAG", "TOOK"})
    names = ("BATCH", "WHEN", "IN", "OUT", "LATE", "ASIDE", "LAG", "TOOK", "VERSION")
    table = columns(*names, right=right, shrink=frozenset({"VERSION"}))
    for each in batches:
        table.add_row(
            str(each.batch),
            text((ago(each.at, now), QUIET)),
            "" if each.rows_in is None else number(each.rows_in),
            number(each.rows_out) if each.landed else text(("begun", CAREFUL)),
            _unless_none(each.late_rows),
            _unless_none(each.set_aside),
            number(each.lag) if each.log_end else "",
            "" if each.seconds is None else duration(each.seconds),
            flexible(text((each.version or ("no rows" if each.landed else ""), QUIET))),
        )
    return indented(table, above=1)


def _unless_none(value: int) -> RenderableType:
    return text((number(value), CAREFUL if value else QUIET))


def render_streams(found: Sequence[StreamStatus], now: datetime) -> RenderableType:
    if not found:
        return text("no streams are declared")
    names = ("STREAM", "STATE", "CHANGED", "BATCH", "LAG", "TOPIC", "DATASET")
    table = columns(*names, right=frozenset({"BATCH", "LAG"}), shrink=frozenset({"DATASET"}))
    for each in found:
        batch = each.batches[0] if each.batches else None
        outside = each.position
        changed = outside.begun if outside else each.live.changed_at if each.live else None
        table.add_row(
            text((each.name, STRONG)),
            text((each.state, _STYLES[each.state])),
            text((ago(changed, now) if changed else "", QUIET)),
            str(outside.batch) if outside else "" if batch is None else str(batch.batch),
            number(batch.lag) if batch is not None and batch.log_end else "",
            text(each.topic),
            flexible(text(each.dataset)),
        )
    return page(table)


def _start_elsewhere(done: StreamBackfill) -> str:
    if done.has(RESUMED):
        return f"goes on: its checkpoint has moved since batch {done.batch}"
    return f"start it again where it runs: it goes on behind batch {done.batch}"


def render_backfill(done: StreamBackfill, status: StreamStatus, now: datetime) -> RenderableType:
    rows: list[tuple[str, list[RenderableType]]] = [
        ("way", [text(f"{done.way}: {done.why}")]),
        ("run", [text(f"{done.run_id}, published; take it back with backcast undo {done.run_id}")]),
        ("backup", [text(done.backup)] if done.backup else []),
        ("stream", [text(_start_elsewhere(done))] if done.external else []),
    ]
    head = text((done.stream, STRONG), f"  {done.start} to {done.end} ", ("restated", "bold green"))
    return page(head, blocks(rows), text(""), render_stream(status, now))
