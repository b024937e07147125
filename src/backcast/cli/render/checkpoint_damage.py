"""What is wrong with a checkpoint: file by file, what Spark would do, what to type."""

from __future__ import annotations

from pathlib import Path

from rich.console import RenderableType

from backcast.cli.locate import short_path
from backcast.cli.render.layout import BAD, CAREFUL, GOOD, QUIET, STRONG, command, indented, page, text
from backcast.cli.render.words import count
from backcast.model.checkpoint import Damage, Severity, Verification

_MARKS = {
    Severity.FAILS: ("fails", BAD),
    Severity.SILENT: ("silent", BAD),
    Severity.UNKNOWN: ("unknown", CAREFUL),
    Severity.HARMLESS: ("harmless", QUIET),
}
_HARMLESS_SHOWN = 5


def render_verification(found: Verification, named: str) -> RenderableType:
    serious = [each for each in found.damages if each.severity is not Severity.HARMLESS]
    harmless = [each for each in found.damages if each.severity is Severity.HARMLESS]
    hidden = len(harmless) - _HARMLESS_SHOWN
    return page(
        text((short_path(Path(found.path)), STRONG)),
        indented(text((f"{count(found.files, 'file')} read", QUIET))),
        *(_damage(each) for each in (*serious, *harmless[:_HARMLESS_SHOWN])),
        indented(text((f"and {count(hidden, 'harmless one')} more; --json has them all", QUIET)))
        if hidden > 0
        else None,
        *_loaded(found),
        indented(_verdict(found), above=1),
        _next(found, named) if serious else None,
    )


def _damage(each: Damage) -> RenderableType:
    word, style = _MARKS[each.severity]
    return indented(
        page(
            text((f"{word:<9}", style), (each.file, STRONG)),
            indented(text(each.what)),
            indented(text(("restart: ", QUIET), each.at_restart)),
            indented(text(("remedy: ", QUIET), each.remedy)) if each.remedy else None,
        ),
        above=1,
    )


def _loaded(found: Verification) -> list[RenderableType]:
    return [
        indented(text(("loaded   ", GOOD), line), above=int(not position)) for position, line in enumerate(found.loaded)
    ]


def _verdict(found: Verification) -> RenderableType:
    if found.sound:
        return text(("sound", GOOD), ": the stream can go on")
    if found.recoverable is None:
        return text(("no batch is whole", BAD), ": only a backup, or a fork at offsets that the sink proves")
    return text((f"batch {found.recoverable} is the newest that is whole", CAREFUL))


def _next(found: Verification, named: str) -> RenderableType:
    lines = [f"backcast checkpoint backup {named}"]
    if found.recoverable is not None:
        lines.append(f"backcast checkpoint rewind {named} --to-batch {found.recoverable}")
    lines.append(f"backcast checkpoint restore {named} --from BACKUP")
    return command(*lines)
