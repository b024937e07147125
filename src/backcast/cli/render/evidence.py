"""Bundles, what was found in them, keys and notes, as people read them."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import RenderableType
from rich.table import Table

from backcast.cli.render.layout import (
    BAD,
    CAREFUL,
    GOOD,
    QUIET,
    STATE_STYLES,
    STRONG,
    blocks,
    command,
    indented,
    page,
    text,
    tick,
)
from backcast.cli.render.words import size
from backcast.model.evidence import Bundle, Note, Signature, Verified

_SHORT = 16


def render_bundle(written: Bundle) -> RenderableType:
    signed = written.signed_with is not None
    by = text(f"with key {(written.signed_with or '')[:_SHORT]}") if signed else _not_signed()
    again = f"backcast verify {written.file}" + (" --key PUBLIC_KEY" if signed else "")
    return page(
        text((written.run_id, STRONG), "  ", ("evidence written", GOOD)),
        blocks(
            [
                ("file", [text(f"{written.file}, {size(written.bytes)}")]),
                ("sha256", [text((written.sha256, QUIET))]),
                ("signed", [by]),
                *([("changed", _changed(written))] if written.changed else []),
            ]
        ),
        command(again),
    )


def _changed(written: Bundle) -> list[RenderableType]:
    told: list[RenderableType] = [text(written.changed)]
    if not written.compared:
        told.append(text((f"counts only: backcast diff {written.run_id} tells columns and rows", QUIET)))
    return told


def _not_signed() -> RenderableType:
    return text(("NOT SIGNED", BAD), ": anybody could have written it; sign it with --key KEYFILE")


def render_verified(found: Verified, file: str) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for check in found.checks:
        grid.add_row(tick(True), text(check))
    grid.add_row(*_signature(found))
    for said in found.witness:
        grid.add_row(tick(True), text(f"the table itself: {said}"))
    proven = found.signature is Signature.VALID
    outcome = ("verified", GOOD) if proven else ("consistent, not proven", CAREFUL)
    return page(
        text((file, STRONG), "  ", outcome),
        indented(
            text(found.run_id, "  ", (found.state, STATE_STYLES.get(found.state, "")), "  ", (found.table, QUIET))
        ),
        indented(grid, above=1),
    )


def _signature(found: Verified) -> tuple[RenderableType, RenderableType]:
    key = found.signed_with[:_SHORT]
    match found.signature:
        case Signature.VALID:
            return tick(True), text(f"signed with key {key}, which is the one that was given")
        case Signature.UNCHECKED:
            told = text(("SIGNATURE NOT CHECKED", BAD), f": it names key {key}; give its public half with --key")
            return text(("!", CAREFUL)), told
        case Signature.NONE:
            return text(("!", CAREFUL)), text(("NOT SIGNED", BAD), ": anybody could have written this file")


def render_note(added: Note) -> RenderableType:
    by = f", by {added.account}" if added.account else ""
    return text((added.run_id, STRONG), f"  event {added.number}{by}: {added.text}")


def render_report(run_id: str, file: str) -> RenderableType:
    return text((run_id, STRONG), f"  report written to {file}")


def render_keys(made: Mapping[str, str]) -> RenderableType:
    return page(
        text(("key ", STRONG), (made["key"][:_SHORT], STRONG)),
        blocks(
            [
                ("private", [text(f"{made['private']}: only you can read it; it is shown to nobody")]),
                ("public", [text(f"{made['public']}: give it to whoever verifies")]),
            ]
        ),
        command(f"backcast evidence RUN --out FILE --key {made['private']}"),
    )
