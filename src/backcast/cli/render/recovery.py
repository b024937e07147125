"""What became of a stream, and how it comes back."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import RenderableType

from backcast.cli.render.layout import BAD, CAREFUL, GOOD, QUIET, STRONG, blocks, page, section, text
from backcast.cli.render.plan import findings_grid
from backcast.cli.render.window import window_text
from backcast.cli.render.words import count
from backcast.model.finding import Finding
from backcast.model.integrity import Integrity, changes
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
                ("rows", [] if found.integrity is None else _looked_at(found.integrity)),
                ("checkpoint", _checkpoint(found)),
                ("log", _log(found)),
                ("therefore", [text(_therefore(found))]),
            ]
        ),
        None if found.integrity is None else _findings(found.integrity.findings),
    )


def render_start_elsewhere(found: Recovery) -> RenderableType:
    """What is left to whoever runs the stream."""
    fresh = found.way is Way.FRESH
    begins = f"begins with batch 0, at {_offsets(found.starting)}" if fresh else "goes on where it stands"
    return text((found.stream, STRONG), f"  start it again where it runs: it {begins}")


def render_integrity(before: Integrity | None, after: Integrity) -> RenderableType:
    """What is otherwise than before rows were added."""
    mended, new = changes(before, after) if before is not None else ((), after.findings)
    lines = [*_looked_at(after), *(text(("mended  ", GOOD), each.reason) for each in mended)]
    if not mended and not new:
        lines.append(text(("as before", QUIET)))
    return page(
        text((after.health.dataset, STRONG), "  with the rows that were added"),
        blocks([("rows", lines)]),
        _findings(new),
    )


def _looked_at(found: Integrity) -> list[RenderableType]:
    health = found.health
    if health.window is None:
        return ["none"]
    where = window_text(health.window, health.zone)
    lines: list[RenderableType] = [f"{count(health.rows, 'row')} looked at, the newest: {where}"]
    if not found.findings:
        key = "" if health.keys is None else f"{', '.join(health.keys.columns)} once each, "
        lines.append(text((f"{key}nothing missing", GOOD)))
    if found.gaps.between_rows and not found.gaps.unanswered:
        lines.append(text((f"only holes between two rows were looked for: {found.gaps.between_rows}", QUIET)))
    return lines


def _findings(findings: tuple[Finding, ...]) -> RenderableType | None:
    return section("Findings", findings_grid(findings)) if findings else None


def _table(found: Recovery) -> list[RenderableType]:
    version = "" if found.version is None else f", version {found.version}"
    if found.by:
        return [
            text((found.table, STRONG), (f"  dataset {found.dataset}", QUIET)),
            f"what was read is proven up to {_offsets(found.proven)}: {found.by}",
        ]
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
