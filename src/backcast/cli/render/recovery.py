"""What became of a stream, and how it comes back."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import RenderableType

from backcast.cli.render.layout import BAD, CAREFUL, GOOD, QUIET, STRONG, blocks, page, text
from backcast.cli.render.words import count
from backcast.model.log import Ranges
from backcast.model.recovery import NO_BATCH, Recovery, Way

_SHOWN = 5


def render_recovery(found: Recovery) -> RenderableType:
    whole = found.way is Way.START and not found.lacking
    head = text(
        (found.stream, STRONG), "  ", ("nothing to recover" if whole else found.way.value, GOOD if whole else CAREFUL)
    )
    return page(
        head,
        blocks(
            [
                ("table", _table(found)),
                ("checkpoint", _checkpoint(found)),
                ("log", _log(found)),
                ("therefore", [text(_therefore(found))]),
            ]
        ),
    )


def _table(found: Recovery) -> list[RenderableType]:
    version = "" if found.version is None else f", version {found.version}"
    newest = f"its newest batch is {found.batch:,}{version}" if found.batch > NO_BATCH else "the query begins anew"
    return [
        text((found.table, STRONG), (f"  dataset {found.dataset}", QUIET)),
        f"{newest}: what was read is proven up to {_offsets(found.proven)}",
    ]


def _checkpoint(found: Recovery) -> list[RenderableType]:
    lines: list[RenderableType] = [text(found.checkpoint)]
    lines += [text((each, BAD)) for each in found.damages[:_SHOWN]]
    if len(found.damages) > _SHOWN:
        lines.append(text((f"and {count(len(found.damages) - _SHOWN, 'damage')} more", QUIET)))
    if found.position is not None:
        lines.append(f"stands at {_offsets(found.position)}")
    return lines


def _log(found: Recovery) -> list[RenderableType]:
    lines: list[RenderableType] = ["has every record from there on"]
    if found.gone:
        lines = [text((f"no longer has {_ranges(found.gone)}", BAD))]
    if found.lacking:
        where = "the archive has to give them" if found.archived else "and the topic has no archive"
        lines.append(text((f"{_ranges(found.lacking)} are not in the table", BAD), f": {where}"))
    elif found.gone:
        lines.append("they are in the table: a run has added them")
    return lines


def _therefore(found: Recovery) -> str:
    if found.way is Way.START:
        return f"{found.why}: it can go on"
    return f"{found.why}: a fresh one begins at {_offsets(found.starting)}; the old one is kept aside"


def _ranges(ranges: Ranges) -> str:
    return ", ".join(f"{each.partition}={each.start}..{each.end}" for each in ranges)


def _offsets(position: Mapping[int, int]) -> str:
    return ", ".join(f"{partition}={offset}" for partition, offset in sorted(position.items()))
