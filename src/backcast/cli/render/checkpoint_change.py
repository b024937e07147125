"""What was made out of a checkpoint: backups, forks, rewinds; and how two differ."""

from __future__ import annotations

from pathlib import Path

from rich.console import RenderableType

from backcast.cli.locate import short_path
from backcast.cli.render.checkpoint import position_lines
from backcast.cli.render.layout import BAD, CAREFUL, GOOD, QUIET, STRONG, blocks, command, indented, page, section, text
from backcast.cli.render.words import count, size
from backcast.model.checkpoint import Backup, Change, CheckpointDifference, SinkOutcome, SinkPrediction

_OUTCOMES = {
    SinkOutcome.APPLY: ("applies", GOOD),
    SinkOutcome.SKIP: ("skips silently", BAD),
    SinkOutcome.DUPLICATE: ("takes rows twice", BAD),
    SinkOutcome.REFUSE: ("is not written to", BAD),
}
_DONE = {"rewind": "rewound", "fork": "forked", "restore": "restored"}
_BATCHES_SHOWN = 10


def render_backup(made: Backup, named: str) -> RenderableType:
    batch = "no batch committed yet" if made.batch is None else f"at batch {made.batch}"
    running = f"; the stream was running, and it took {count(made.attempts, 'look')}" if made.running else ""
    planned = made.planned is not None and made.planned != made.batch
    return page(
        text((short_path(Path(made.path)), STRONG)),
        blocks(
            [
                ("backup", [text(f"of {short_path(Path(made.checkpoint))}")]),
                ("boundary", [text(f"{batch}{running}")]),
                ("", [text((f"batch {made.planned} is planned in it, and runs again", QUIET))] if planned else []),
                ("files", [text(f"{count(made.files, 'file')}, {size(made.size)}")]),
                ("sha256", [text((made.sha256, QUIET))]),
                ("damaged", [text((f"{each.file}: {each.what}", BAD)) for each in made.damages]),
            ]
        ),
        command(f"backcast checkpoint restore {named} --from {short_path(Path(made.path))}", label="Undo"),
    )


def render_change(changed: Change) -> RenderableType:
    named = changed.stream or short_path(Path(changed.path))
    done = _DONE.get(changed.action, changed.action) if changed.changed else "nothing to do"
    batch = "it begins with batch 0" if changed.batch is None else f"it goes on after batch {changed.batch}"
    return page(
        text((named, STRONG), "  ", (done, GOOD)),
        blocks(
            [
                ("folder", [text(short_path(Path(changed.path)))] if changed.stream else []),
                ("query", [text(changed.query_id)]),
                ("batch", [text(batch)]),
                ("position", position_lines(changed.sources)),
                ("left out", [text(f"{count(changed.removed, 'file')} of later batches")] if changed.removed else []),
                ("state", [text(("loaded  ", GOOD), line) for line in changed.proven]),
                ("sink", [] if changed.sink is None else _sink(changed.sink)),
                ("before", [text("kept as ", (short_path(Path(changed.kept)), STRONG))] if changed.kept else []),
                ("note", [text((line, CAREFUL)) for line in changed.notes]),
            ]
        ),
    )


def render_difference(found: CheckpointDifference) -> RenderableType:
    ids = "the same query" if found.same_query else f"two queries: {found.left_id} | {found.right_id}"
    parted = "they share no batch" if found.parted_after is None else f"alike up to batch {found.parted_after}"
    batches = [f"batch {each.number}: {each.what}" for each in found.batches]
    hidden = len(batches) - _BATCHES_SHOWN
    more = [text((f"and {count(hidden, 'batch', 'batches')} more", QUIET))] if hidden > 0 else []
    same = found.same_query and not (batches or found.positions or found.settings or found.state)
    return page(
        text((short_path(Path(found.left)), STRONG), " | ", (short_path(Path(found.right)), STRONG)),
        indented(text((f"{ids}, {parted}", QUIET))),
        _listed("Next offsets", found.positions),
        section("Batches", page(*(text(line) for line in batches[:_BATCHES_SHOWN]), *more)) if batches else None,
        _listed("State", found.state),
        _listed("Settings", found.settings),
        indented(text(("no difference", GOOD)), above=1) if same else None,
    )


def _listed(heading: str, lines: tuple[str, ...]) -> RenderableType | None:
    return section(heading, page(*(text(line) for line in lines))) if lines else None


def _sink(sink: SinkPrediction) -> list[RenderableType]:
    word, style = _OUTCOMES[sink.outcome]
    lines: list[RenderableType] = [text((sink.table, STRONG), "  ", (word, style)), text(sink.reason)]
    return [*lines, text((sink.remedy, CAREFUL))] if sink.remedy else lines
