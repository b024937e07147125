"""Why a part of a dataset is as it is: what readers see now, then every run that reached it, newest first."""

from __future__ import annotations

from rich.console import RenderableType

from backcast.cli.render.layout import BAD, CAREFUL, GOOD, QUIET, STATE_STYLES, STRONG, blocks, indented, page, text
from backcast.cli.render.words import count, moment, number, signed, some
from backcast.model.explanation import ChunkRows, Explanation, Made, Seen, Touch, Word
from backcast.model.time import Interval, local

_CHUNKS = 12


def render_explanation(found: Explanation) -> RenderableType:
    head = text((f"{found.dataset} {found.asked}", STRONG), "  ", (_span(found.window, found.zone), QUIET))
    if not found.runs:
        return page(head, indented(text("no run on record touched it: what is there was written by others")))
    accepted = text(f"{found.accepted}", ("  the newest publish that readers see here", QUIET))
    rows: list[tuple[str, list[RenderableType]]] = [
        ("now", [_seen(each, found.zone) for each in found.seen]),
        ("accepted", [accepted if found.accepted else text("no run: none that reached it is visible")]),
    ]
    live = text(("what others wrote since, such as a live writer, is not on record here", QUIET))
    return page(head, blocks(rows), indented(live), *(_touch(each, found.zone) for each in found.runs))


def _seen(piece: Seen, zone: str) -> RenderableType:
    where = _span(piece.window, zone)
    beside = f"; some rows since by {', '.join(piece.beside)}" if piece.beside else ""
    if piece.run_id is None:
        return text(f"{where}  ", ("no run on record replaced it", CAREFUL), beside)
    return text(f"{where}  rows of {piece.run_id}{beside}")


def _touch(each: Touch, zone: str) -> RenderableType:
    reach = ", ".join(_span(window, zone) for window in each.windows) or "all of it: it has no window"
    commit = f", commit {each.git_commit[:12]}" if each.git_commit else ""
    asked = " ".join(filter(None, (each.ticket, each.reason))) or each.kind
    rows: list[tuple[str, list[RenderableType]]] = [
        ("why", [text(asked)]),
        ("who", [text(_who(each))]),
        ("what", [text(f"{each.transform} {each.version}{commit}; {some(each.inputs)}")]),
        ("scope", [text(reach + _of(each, zone) + (", only some of its rows" if each.partly else ""))]),
        ("approval", [text(_said(word)) for word in each.approvals]),
        ("rows", _rows(each)),
        ("changed", [text(f"in all of the run: {each.changed}")] if each.changed else []),
        ("published", [line for made in each.published for line in _made(made)] or _unpublished(each)),
        ("after", [text(f"superseded by {each.superseded_by}")] if each.superseded_by else []),
        ("notes", [text(note) for note in each.notes]),
    ]
    head = text((each.run_id, STRONG), "  ", (each.state, STATE_STYLES.get(each.state, "")))
    return page(text(), head, blocks(rows))


def _of(each: Touch, zone: str) -> str:
    """The run's own scope, where the part that was asked about is less."""
    if not each.scope or each.scope == each.windows:
        return ""
    return f", of {some(tuple(_span(window, zone) for window in each.scope))}"


def _said(word: Word) -> str:
    role, comment = f" as {word.role}" if word.role else "", f": {word.comment}" if word.comment else ""
    what = "what the gates noticed was accepted" if word.what == "accepted" else word.what
    return f"{what} by {word.by}{role}, {moment(word.at)}{comment}"


def _who(each: Touch) -> str:
    account = f", on account {each.account}" if each.account else ""
    return f"{each.kind} asked for by {each.requested_by or 'nobody named'}, {moment(each.planned_at)}{account}"


def _rows(each: Touch) -> list[RenderableType]:
    shown: list[RenderableType] = [text(_change(chunk)) for chunk in each.chunks[:_CHUNKS]]
    if len(each.chunks) > _CHUNKS:
        total = sum(chunk.rows or 0 for chunk in each.chunks)
        shown.append(text((f"{count(len(each.chunks), 'chunk')} in all, {count(total, 'row')}", QUIET)))
    return shown


def _change(chunk: ChunkRows) -> str:
    if chunk.rows is None:
        return f"{chunk.chunk}  not computed"
    if chunk.before is None:
        return f"{chunk.chunk}  {count(chunk.rows, 'row')}"
    return f"{chunk.chunk}  {number(chunk.before)} -> {number(chunk.rows)} ({signed(chunk.rows - chunk.before)})"


def _made(made: Made) -> list[RenderableType]:
    by = f" by {made.account}" if made.account else ""
    files = f"{count(made.files_added, 'file')} in, {number(made.files_removed)} out"
    lines: list[RenderableType] = [text((f"version {made.version}", GOOD), f", {moment(made.at)}{by}: {files}")]
    if made.undo_version is not None and made.undone_at is not None:
        undone = f" by {made.undone_by}" if made.undone_by else ""
        lines.append(text((f"undone in version {made.undo_version}", BAD), f", {moment(made.undone_at)}{undone}"))
    return lines


def _unpublished(each: Touch) -> list[RenderableType]:
    return [text("never", (f": {each.detail}" if each.detail else "", QUIET))]


def _span(window: Interval, zone: str) -> str:
    """Whole days as days, anything else with its hours, in the dataset's zone."""
    start, end = local(window.start, zone), local(window.end, zone)
    if (start.time(), end.time()) == (start.min.time(), start.min.time()):
        days = (end.date() - start.date()).days
        return f"{start:%Y-%m-%d}" if days == 1 else f"{start:%Y-%m-%d} to {end:%Y-%m-%d}"
    return f"{start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M}"
