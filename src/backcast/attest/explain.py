"""Why did this change? Answered by the store alone, for a part of a dataset's time."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

from backcast.attest.step import attest
from backcast.errors import InvalidRequest
from backcast.model.evidence import APPROVALS, NOTE, Evidence
from backcast.model.explanation import ChunkRows, Explanation, Made, Seen, Touch, Word
from backcast.model.manifest import Manifest
from backcast.model.run import Event, Publication
from backcast.model.scope import TimeClause
from backcast.model.states import VISIBLE_STATES
from backcast.model.table import PublishMode
from backcast.model.time import Grain, Interval, first_instant, joined, next_wall, parse_instant
from backcast.ports import RunReader

_ALL = 100_000
_FORMS = (
    (r"\d{4}", Grain.YEAR, "%Y"),
    (r"\d{4}-\d{2}", Grain.MONTH, "%Y-%m"),
    (r"\d{4}-\d{2}-\d{2}", Grain.DAY, "%Y-%m-%d"),
)
_HOUR = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}")


def window_of(partition: str, zone_name: str) -> Interval:
    """The year, month, day or hour of that name in the dataset's zone."""
    try:
        if _HOUR.fullmatch(partition):
            wall = datetime.strptime(partition.replace(" ", "T"), "%Y-%m-%dT%H")  # noqa: DTZ007 - as below
            start = first_instant(wall, zone_name)
            return Interval(start=start, end=start + timedelta(hours=1))
        for form, grain, spelled in _FORMS:
            if re.fullmatch(form, partition):
                wall = datetime.strptime(partition, spelled)  # noqa: DTZ007 - a wall clock time has no zone
                return Interval(
                    start=first_instant(wall, zone_name), end=first_instant(next_wall(wall, grain), zone_name)
                )
    except (ValueError, OverflowError):
        pass
    raise InvalidRequest(
        f"{partition!r} names no year, month, day or hour", hint="for example --partition 2025-04 or 2025-04-17"
    )


def moment_of(at: str, zone_name: str) -> Interval:
    start = parse_instant(at, zone_name)
    return Interval(start=start, end=start + timedelta(microseconds=1))


def explain(reader: RunReader, dataset: str, asked: str, window: Interval, zone_name: str) -> Explanation:
    """Every run on record whose scope reaches the window, and which of them readers see there."""
    touches: list[tuple[Touch, Evidence]] = []
    for run in reader.runs(dataset=dataset, limit=_ALL):
        manifest = reader.manifest(run.run_id)
        if _reached(manifest, window) is not None:
            evidence = attest(reader, run.run_id)
            touches.append((_touch(evidence, window), evidence))
    seen = _seen([evidence for _, evidence in touches], window)
    visible = [evidence for _, evidence in touches if _visible(evidence) is not None]
    newest = max(visible, key=_published_at, default=None)
    return Explanation(
        dataset=dataset,
        asked=asked,
        window=window,
        zone=zone_name,
        runs=tuple(touch for touch, _ in touches),
        seen=seen,
        accepted=None if newest is None else newest.run.run_id,
    )


def _reached(manifest: Manifest, window: Interval) -> tuple[Interval, ...] | None:
    """What of the window is in scope; empty for a run without windows, which may reach any row; None for nothing."""
    if not manifest.scope.windows:
        return ()
    cuts = [
        Interval(start=max(each.start, window.start), end=min(each.end, window.end))
        for each in manifest.scope.windows
        if each.overlaps(window)
    ]
    return joined(cuts) or None


def _touch(evidence: Evidence, window: Interval) -> Touch:
    run, manifest, events = evidence.run, evidence.manifest, evidence.events
    return Touch(
        run_id=run.run_id,
        state=run.state.value,
        kind=run.kind,
        reason=run.reason,
        ticket=run.ticket,
        requested_by=run.requested_by,
        planned_at=run.created_at,
        account=events[0].account if events else "",
        transform=manifest.code.transform,
        version=manifest.code.version,
        git_commit=manifest.code.git_commit,
        inputs=tuple(f"{pin.identity.name}@{pin.version or 'offsets'}" for pin in manifest.inputs),
        windows=_reached(manifest, window) or (),
        scope=manifest.scope.windows,
        partly=_partly(manifest),
        scope_rows=manifest.target.rows,
        approvals=(*(_word(event) for event in events if event.name.startswith(APPROVALS)), *_reviewed(evidence)),
        chunks=_chunks(evidence, window),
        changed=evidence.change,
        published=tuple(_made(each, events) for each in evidence.publications),
        superseded_by=run.superseded_by,
        detail=run.detail,
        notes=tuple(str(event.data["text"]) for event in events if event.name == NOTE),
    )


def _partly(manifest: Manifest) -> bool:
    others = any(not isinstance(clause, TimeClause) for clause in manifest.scope.predicate.clauses)
    return others or manifest.settings.publish_mode is not PublishMode.REPLACE or not manifest.scope.windows


def _word(event: Event) -> Word:
    data = {key: str(event.data.get(key) or "") for key in ("role", "by", "comment")}
    return Word(at=event.at, what=event.name.removeprefix(APPROVALS), **data)


def _reviewed(evidence: Evidence) -> tuple[Word, ...]:
    """Who accepted what the gates had noticed."""
    review = evidence.verdict.review if evidence.verdict else None
    if review is None:
        return ()
    return (Word(at=review.at, what="accepted", role=review.role, by=review.by, comment=review.comment),)


def _chunks(evidence: Evidence, window: Interval) -> tuple[ChunkRows, ...]:
    rows = {chunk.chunk_id: chunk.output_rows for chunk in evidence.chunks}
    read = {each.chunk: each.digest.rows for each in evidence.verdict.partitions} if evidence.verdict else {}
    before = evidence.rows_before
    return tuple(
        ChunkRows(chunk=plan.id, rows=read.get(plan.id, rows.get(plan.id)), before=before.get(plan.id))
        for plan in evidence.manifest.chunks
        if plan.window.overlaps(window) or not evidence.manifest.scope.windows
    )


def _made(publication: Publication, events: Iterable[Event]) -> Made:
    by = {str(event.data["version"]): event.account for event in events if event.data.get("version") is not None}
    return Made(
        version=publication.version,
        at=publication.published_at,
        account=by.get(publication.version, ""),
        files_added=len(publication.added),
        files_removed=len(publication.removed),
        undo_version=publication.undo_version,
        undone_at=publication.undone_at,
        undone_by=by.get(publication.undo_version or "", ""),
    )


def _seen(runs: Iterable[Evidence], window: Interval) -> tuple[Seen, ...]:
    """Pieces of the window, each with the newest visible run that replaced all of it, and those beside it since."""
    pieces = [Seen(window=window, run_id=None)]
    for evidence in sorted((each for each in runs if _visible(each) is not None), key=_published_at):
        reached = _reached(evidence.manifest, window) or (window,)
        pieces = [new for piece in pieces for new in _over(piece, reached, evidence)]
    return _neighbours_joined(pieces)


def _over(piece: Seen, reached: tuple[Interval, ...], evidence: Evidence) -> list[Seen]:
    run_id, partly = evidence.run.run_id, _partly(evidence.manifest)
    rest, found = [piece.window], []
    for each in reached:
        if not each.overlaps(piece.window):
            continue
        cut = Interval(start=max(each.start, piece.window.start), end=min(each.end, piece.window.end))
        beside = (*piece.beside, run_id)
        found.append(
            piece.model_copy(update={"window": cut, "beside": beside}) if partly else Seen(window=cut, run_id=run_id)
        )
        rest = [left for part in rest for left in part.minus(cut)]
    found += [piece.model_copy(update={"window": left}) for left in rest]
    return sorted(found, key=lambda part: part.window.start)


def _neighbours_joined(pieces: list[Seen]) -> tuple[Seen, ...]:
    found: list[Seen] = []
    for piece in sorted(pieces, key=lambda each: each.window.start):
        if found and (found[-1].run_id, found[-1].beside) == (piece.run_id, piece.beside):
            whole = Interval(start=found[-1].window.start, end=piece.window.end)
            found[-1] = piece.model_copy(update={"window": whole})
        else:
            found.append(piece)
    return tuple(found)


def _visible(evidence: Evidence) -> Publication | None:
    """The publish that readers see, or saw until another run replaced it."""
    if evidence.run.state not in VISIBLE_STATES:
        return None
    live = [each for each in evidence.publications if each.undone_at is None]
    return live[-1] if live else None


def _published_at(evidence: Evidence) -> datetime:
    publication = _visible(evidence)
    return evidence.run.created_at if publication is None else publication.published_at
