"""A readable page about one run: what was asked, who agreed, what ran, what was checked, what became of it."""

from __future__ import annotations

import json
from itertools import groupby, pairwise

from backcast.model.evidence import NOTE, Evidence
from backcast.model.proof import newest, summary
from backcast.model.run import Chunk, Event, Publication
from backcast.model.words import many
from backcast.page.markup import (
    Content,
    Html,
    Tone,
    badge,
    code,
    details,
    facts,
    join,
    page,
    paragraph,
    section,
    table,
    tiles,
)
from backcast.page.run_changes import changes_section, rows_section
from backcast.page.run_checks import STATES, approval_section, moment, rules_section, verdict_section
from backcast.page.timeline import Span, timeline

_JOBS = 60
"""More lines than that nobody reads."""
_LONGEST = 160


def run_page(evidence: Evidence) -> str:
    """The whole document. Equal evidence gives equal bytes: no clock is asked."""
    run = evidence.run
    parts = [
        _tiles(evidence),
        _asked(evidence),
        verdict_section(evidence),
        rules_section(evidence),
        approval_section(evidence),
        _published(evidence),
        changes_section(evidence),
        rows_section(evidence),
        _timeline(evidence),
        _inputs(evidence),
        _notes(evidence),
        _events(evidence),
    ]
    head = evidence.events[-1].sha256 if evidence.events else ""
    foot = join("As its history stood at event ", str(len(evidence.events)), ", ", code(head[:16]), ".")
    state = badge(run.state.value, STATES.get(run.state.value, "info"))
    under = join(state, " ", run.table, f": {run.reason}" if run.reason else "")
    return page(f"Run {run.run_id}", *parts, subtitle=under, foot=foot)


def _tiles(evidence: Evidence) -> Html:
    verdict, chunks = evidence.verdict, evidence.chunks
    failed = [check for check in verdict.checks if not check.passed] if verdict else []
    made = evidence.publications[-1] if evidence.publications else None
    rows = verdict.rows if verdict else sum(chunk.output_rows or 0 for chunk in chunks)
    seconds = sum(record.seconds for record in evidence.stage)
    found: list[tuple[str, Content, Tone]] = [
        ("rows computed", rows, "plain"),
        ("rows in scope before", evidence.manifest.target.rows, "plain"),
        ("chunks", len(chunks), "plain"),
        ("checks failed", f"{len(failed)} of {len(verdict.checks)}" if verdict else "-", "bad" if failed else "good"),
        ("files in, out", f"{len(made.added)}, {len(made.removed)}" if made else "-", "plain"),
        ("spent computing", _seconds(seconds), "plain"),
    ]
    return tiles(found)


def _asked(evidence: Evidence) -> Html:
    run, manifest = evidence.run, evidence.manifest
    windows = [f"{moment(each.start)} to {moment(each.end)}" for each in manifest.scope.windows]
    by = evidence.events[0].account if evidence.events else ""
    commit = manifest.code.git_commit
    return section(
        "What was asked",
        facts(
            [
                ("reason", run.reason),
                ("ticket", run.ticket),
                ("kind", run.kind),
                ("asked for by", join(run.requested_by or "nobody named", f", on account {by}" if by else "")),
                ("planned", moment(run.created_at)),
                ("scope", join(*windows, by="; ") if windows else "no window of time"),
                ("pipeline", f"{run.pipeline} into {run.dataset}, {manifest.settings.publish_mode.value}"),
                ("transform", f"{manifest.code.transform} {manifest.code.version}"),
                ("git commit", code(commit) if commit else "none"),
                ("plan", code(run.manifest_sha256)),
                ("why it is so", run.detail),
            ]
        ),
    )


def _timeline(evidence: Evidence) -> Html:
    states = [event for event in evidence.events if event.name.startswith("state.")]
    spans = [
        Span(
            str(here.data["to"]),
            here.at,
            following.at,
            STATES.get(str(here.data["to"]), "info"),
            _seconds((following.at - here.at).total_seconds()),
        )
        for here, following in pairwise(states)
    ]
    jobs = _jobs(evidence.chunks)
    left_out = paragraph(f"and {len(jobs) - _JOBS:,} jobs more", tone="quiet") if len(jobs) > _JOBS else None
    return section(
        "When",
        timeline(spans, label="states of the run"),
        timeline(jobs[:_JOBS], label="chunks of the run") if jobs else None,
        left_out,
        note="How long the run stayed in each state, and when the jobs of its chunks ran.",
    )


def _jobs(chunks: tuple[Chunk, ...]) -> list[Span]:
    """Neighbouring chunks that one job computed."""
    found = []
    timed = [chunk for chunk in chunks if chunk.started_at is not None and chunk.finished_at is not None]
    for _, group in groupby(timed, key=lambda chunk: chunk.token):
        some = list(group)
        start = min(chunk.started_at for chunk in some if chunk.started_at)
        end = max(chunk.finished_at for chunk in some if chunk.finished_at)
        name = some[0].chunk_id if len(some) == 1 else f"{some[0].chunk_id} +{len(some) - 1}"
        bad = any(chunk.error for chunk in some)
        rows = sum(chunk.output_rows or 0 for chunk in some)
        told = f"{many(len(some), 'chunk')}, {many(rows, 'row')}, {some[0].error[:_LONGEST]}"
        found.append(Span(name, start, end, "bad" if bad else "info", many(rows, "row"), told))
    return found


def _published(evidence: Evidence) -> Html | None:
    if not evidence.publications:
        return None
    rows = [line for each in evidence.publications for line in _versions(each)]
    after = f"Superseded by {evidence.run.superseded_by}." if evidence.run.superseded_by else None
    return section("In the table", table(("version", "what", "when", "files in", "files out"), rows), note=after)


def _versions(each: Publication) -> list[tuple[Content, ...]]:
    made: list[tuple[Content, ...]] = [
        (code(each.version), "published", moment(each.published_at), len(each.added), len(each.removed))
    ]
    if each.undo_version is not None and each.undone_at is not None:
        made.append((code(each.undo_version), "undone", moment(each.undone_at), len(each.removed), len(each.added)))
    return made


def _inputs(evidence: Evidence) -> Html:
    rows = [
        (pin.name, pin.identity.name, code(pin.version) if pin.version else "offsets", pin.rows, pin.files)
        for pin in evidence.manifest.inputs
    ]
    proofs = newest(evidence.events)
    logs = {pin.name: pin.log for pin in evidence.manifest.inputs if pin.log is not None}
    told = [
        paragraph(f"{name}: {summary(log, [proof for proof in proofs if proof.input == name])}")
        for name, log in logs.items()
        if any(proof.input == name for proof in proofs)
    ]
    return section("What was read", table(("input", "table or topic", "version", "rows", "files"), rows), *told)


def _notes(evidence: Evidence) -> Html | None:
    found = [event for event in evidence.events if event.name == NOTE]
    rows = [(moment(event.at), event.account, str(event.data.get("text", ""))) for event in found]
    return section("Notes", table(("when", "account", "note"), rows)) if rows else None


def _events(evidence: Evidence) -> Html:
    rows = [
        (event.number, moment(event.at), event.name, event.account, _told(event), code(event.sha256[:12]))
        for event in evidence.events
    ]
    listed = table(("", "when", "event", "account", "data", "hash"), rows)
    return section(
        "History", details(many(len(rows), "event"), listed), note="Each carries the hash of the one before."
    )


def _told(event: Event) -> str:
    shown = {key: value for key, value in event.data.items() if value not in ("", None)}
    text = ", ".join(f"{key}: {value if isinstance(value, str) else json.dumps(value)}" for key, value in shown.items())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _seconds(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
