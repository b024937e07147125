"""The part of a run's page that says what changed: the diff on record, and the rows of each chunk."""

from __future__ import annotations

from backcast.model.diff import DiffLate
from backcast.model.evidence import Evidence
from backcast.model.run import Chunk
from backcast.page.charts import Bar, bars, columns
from backcast.page.diff import late_paragraph
from backcast.page.markup import Content, Html, Tone, details, join, paragraph, section, table, tiles


def changes_section(evidence: Evidence) -> Html | None:
    """The newest diff of the whole run that somebody looked at; or that nobody did."""
    diff = evidence.whole_diff
    if not diff:
        return _counted(evidence)
    rows = diff.get("rows") or {}
    told: list[tuple[str, Content, Tone]] = [
        ("rows added", int(rows.get("added", 0)), "good"),
        ("rows removed", int(rows.get("removed", 0)), "bad"),
        ("rows changed", int(rows.get("changed", 0)), "careful"),
        ("in format only", int(rows.get("format_only", 0)), "quiet"),
    ]
    moved = [each for each in diff.get("columns") or () if each.get("changed")]
    chart = bars([Bar(str(each["name"]), int(each["changed"])) for each in moved], label="changed rows of each column")
    by_column = join(paragraph("Changed rows of each column:", tone="quiet"), chart) if moved else None
    note = f"Base {diff['base']} against stage {diff['staged']}: {diff['summary']}."
    late = DiffLate.model_validate(diff["late"]) if diff.get("late") else None
    return section("What changed", tiles(told) if rows else None, late_paragraph(late), by_column, note=note)


def _counted(evidence: Evidence) -> Html | None:
    """What the verdict knows without a diff: counts alone."""
    if evidence.verdict is None:
        return None
    change = evidence.verdict.change
    told: list[tuple[str, Content, Tone]] = []
    if change is not None:
        told = [("rows before", change.before, "quiet"), ("rows now", change.after, "plain")]
    said = evidence.change
    note = f"{said[0].upper()}{said[1:]}. These are counts only: `backcast diff {evidence.run.run_id}` tells the rest."
    return section("What changed", tiles(told) if told else None, note=note)


def _read(chunk: Chunk) -> str:
    return ", ".join(f"{'' if each.exact else '≤ '}{each.rows:,} {each.input}" for each in chunk.inputs)


def rows_section(evidence: Evidence) -> Html | None:
    before = evidence.rows_before
    groups = []
    for chunk in evidence.chunks:
        if chunk.output_rows is None:
            continue
        now = Bar("now", chunk.output_rows, "info")
        was = Bar("before", before[chunk.chunk_id], "quiet") if chunk.chunk_id in before else None
        groups.append((chunk.chunk_id, [now] if was is None else [was, now]))
    if not groups:
        return None
    note = "Grey: what was there; blue: what the run computed." if before else "What the run computed for each chunk."
    listed = table(
        ("chunk", "read", "before", "now", "attempts", "staged version"),
        [
            (chunk.chunk_id, _read(chunk), before.get(chunk.chunk_id), chunk.output_rows, chunk.attempts, chunk.version)
            for chunk in evidence.chunks
        ],
    )
    return section(
        "Rows of each chunk", columns(groups, label="rows of each chunk"), details("as a table", listed), note=note
    )
