"""Gaps and doubles of a dataset, and what would fill them."""

from __future__ import annotations

from rich.console import RenderableType

from backcast.cli.render.layout import BAD, CAREFUL, GOOD, QUIET, STRONG, blocks, command, page, text
from backcast.cli.render.window import window_text
from backcast.cli.render.words import count, number
from backcast.model.health import Gap, Health
from backcast.model.time import Interval, local

_SHOWN = 20


def render_check(health: Health) -> RenderableType:
    word = ("SOUND", GOOD) if health.sound else ("NOT SOUND", BAD)
    return page(
        text((health.dataset, STRONG), "  ", word, (f"  {health.table} at version {health.version}", QUIET)),
        text(""),
        blocks(
            [
                ("rows", _rows(health)),
                ("gaps", _gaps(health)),
                ("thin", _thin(health)),
                ("key", _keys(health)),
            ]
        ),
        _remedy(health),
    )


def _rows(health: Health) -> list[RenderableType]:
    if health.window is None:
        return ["none"]
    span = window_text(health.window, health.zone)
    usual = f", usually {number(health.usual)} each" if health.usual else ""
    lines: list[RenderableType] = [
        f"{number(health.rows)} in {span} ({count(health.pieces, health.grain.value)}{usual})"
    ]
    if health.without_time:
        lines.append(text((f"{count(health.without_time, 'row')} without a time that can be read", BAD)))
    return lines


def _gaps(health: Health) -> list[RenderableType]:
    if not health.gaps:
        return [text(("none", GOOD))] if health.window else []
    missing = sum(gap.pieces for gap in health.gaps)
    lines: list[RenderableType] = [
        text((f"{count(missing, health.grain.value)} without a row, in {count(len(health.gaps), 'place')}", BAD))
    ]
    lines += [f"{window_text(gap.window, health.zone)}{_pieces(gap, health)}" for gap in health.gaps[:_SHOWN]]
    return [*lines, *_more(len(health.gaps))]


def _pieces(gap: Gap, health: Health) -> str:
    return f"  ({count(gap.pieces, health.grain.value)})" if gap.pieces > 1 else ""


def _thin(health: Health) -> list[RenderableType]:
    """Fewer than a tenth of what is usual: often a load that broke off."""
    lines: list[RenderableType] = [
        text((window_text(each.window, health.zone), CAREFUL), f"  {count(each.rows, 'row')}")
        for each in health.thin[:_SHOWN]
    ]
    return [*lines, *_more(len(health.thin))]


def _more(found: int) -> list[RenderableType]:
    return [text((f"and {number(found - _SHOWN)} more: --json has them", QUIET))] if found > _SHOWN else []


def _keys(health: Health) -> list[RenderableType]:
    keys = health.keys
    if keys is None:
        return [text(("the dataset declares none: doubles cannot be told from rows that look alike", QUIET))]
    name = ", ".join(keys.columns)
    lines: list[RenderableType] = []
    if keys.doubles:
        lines.append(text((f"{count(keys.doubles, 'key')} more than once", BAD), f"  e.g. {keys.example}"))
        lines += [f"in {window_text(each, health.zone)}" for each in keys.where[:_SHOWN]]
        lines += _more(len(keys.where))
    if keys.nulls:
        lines.append(text((f"{count(keys.nulls, 'row')} with a null in {name}", BAD)))
    return lines or [text((f"{name}: each once", GOOD))]


def _remedy(health: Health) -> RenderableType | None:
    """The first gap can be filled by a run of a pipeline that writes the dataset, and doubles restated."""
    if health.gaps and health.pipelines:
        return _plan(health, health.pipelines[0], health.gaps[0].window, '--kind backfill --reason "a gap"')
    if health.keys is not None and health.keys.where and health.restated_by:
        return _plan(health, health.restated_by[0], health.keys.where[0], '--kind repair --reason "doubled keys"')
    return None


def _plan(health: Health, pipeline: str, window: Interval, why: str) -> RenderableType:
    start, end = _bounds(window, health.zone)
    return command(f"backcast plan {pipeline} --from {start} --to {end} {why}")


def _bounds(window: Interval, zone: str) -> tuple[str, str]:
    walls = [local(each, zone) for each in (window.start, window.end)]
    days = all(wall.time() == wall.time().min for wall in walls)
    first, last = (f"{wall:%Y-%m-%d}" if days else f"{wall:%Y-%m-%dT%H:%M}" for wall in walls)
    return first, last
