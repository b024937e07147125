"""After the commit landed: read back, record, close. Everything here can be repeated."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from backcast.errors import OutcomeUnknown
from backcast.faults import point
from backcast.model.report import Progress
from backcast.model.run import Effect, Event, Publication, Run
from backcast.model.scope import EVERYTHING
from backcast.model.states import EffectState, RunState
from backcast.model.table import PublishMode, Rewrite
from backcast.model.words import many
from backcast.publish.job import PublishJob
from backcast.publish.supersede import supersede

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.digest import Digest

_DIFFERS = "publish.read-back-differs"


def finish(job: PublishJob, run: Run, effect: Effect, version: str) -> Publication:
    """What does not hold what was validated is published all the same, and only as such can it be undone."""
    data, now = effect.data, job.clock.now()
    rewrite = landed_rewrite(job, version, data["head"])
    publication = Publication(
        run_id=run.run_id,
        generation=int(data["generation"]),
        fence=effect.key,
        base=data["base"],
        staged=data["staged"],
        head=data["head"],
        version=version,
        added=tuple(sorted(rewrite.added) if rewrite else data["added"]),
        removed=tuple(sorted(rewrite.removed) if rewrite else data["removed"]),
        published_at=now,
        undo_until=now + timedelta(seconds=job.manifest.settings.undo_window_seconds),
        amendment=int(data.get("amendment", 0)),
    )
    problem = _read_back(job, publication, frozenset(data["live"]), rewritten=rewrite is not None)
    if problem is not None and rewrite is None:
        publication = _as_landed(job, publication)
    job.store.runs.save_publication(publication, token=job.check_lease())
    point("publish.after-record")
    job.store.effects.end(effect, EffectState.LANDED, version=version)
    point("publish.before-state")
    close(job, run, publication, detail="" if problem is None else problem.message)
    if problem is not None:
        raise problem
    return publication


def problem_on_record(publication: Publication, events: list[Event]) -> OutcomeUnknown | None:
    """What the newest publish was told when the table was read back: repeating the command does not mend it."""
    for event in reversed(events):
        if event.name == _DIFFERS:
            return _differing(publication)
        if event.name == "state.publishing":
            break
    return None


def _differing(publication: Publication) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"version {publication.version} was published but does not hold what was validated",
        hint=f"look at the table before anything else; to take it back: backcast undo {publication.run_id}",
    )


def _as_landed(job: PublishJob, publication: Publication) -> Publication:
    """With those files that the commit really put in and took out: an undo needs them."""
    there = job.target.files(publication.version, job.reach).paths
    return publication.model_copy(
        update={
            "added": tuple(path for path in publication.added if path in there),
            "removed": tuple(path for path in publication.removed if path not in there),
        }
    )


def landed_rewrite(job: PublishJob, version: str, head: str | None) -> Rewrite | None:
    """What a commit wrote that could not swap files. Raises when it took out more than was decided on: live rows."""
    rewrite = job.target.rewritten(version)
    if rewrite is None:
        return None
    surplus = rewrite.removed - job.target.files(head, job.manifest.scope.predicate).paths
    if surplus:
        raise OutcomeUnknown(
            f"version {version} took out {many(len(surplus), 'file')} that nobody decided on",
            hint=f"bring the rows of {min(surplus)} back before anything else",
        )
    return rewrite


def _read_back(
    job: PublishJob, publication: Publication, live: frozenset[str], *, rewritten: bool
) -> OutcomeUnknown | None:
    """The published version must hold, in the scope, exactly the validated files and the live ones that were kept;
    otherwise the returned error says so.

    Files never change once written, so equal files are equal rows, and no data file has to be read. Only where the
    target had to write the rows again, rows are compared.
    """
    if job.mode is not PublishMode.REPLACE and not rewritten:
        return _as_decided(job, publication)
    scope = job.manifest.scope.predicate
    now = job.target.files(publication.version, scope)
    wanted = job.target.files(publication.staged, scope).paths | live
    same = _same_rows(job, publication, live) if rewritten else now.paths == wanted
    if not same or now.has_deletes:
        return _differs(job, publication, missing=wanted - now.paths, extra=now.paths - wanted)
    job.on_progress(
        Progress(
            step="publish",
            message=f"read back {many(now.rows, 'row')} in {many(len(now.files), 'file')}",
            rows=now.rows,
        )
    )
    return None


def _as_decided(job: PublishJob, publication: Publication) -> OutcomeUnknown | None:
    """Rows that were added or merged lie beside others, who go on writing: what counts is what the commit did."""
    added, removed = job.target.changed(publication.version)
    wanted, gone = frozenset(publication.added), frozenset(publication.removed)
    if (added, removed) != (wanted, gone):
        return _differs(job, publication, missing=wanted - added, extra=(added - wanted) | (removed ^ gone))
    job.on_progress(Progress(step="publish", message=f"read back {many(len(added), 'file')}"))
    return None


def _differs(
    job: PublishJob, publication: Publication, missing: frozenset[str], extra: frozenset[str]
) -> OutcomeUnknown:
    job.store.runs.record(publication.run_id, _DIFFERS, missing=len(missing), extra=len(extra))
    return _differing(publication)


def _same_rows(job: PublishJob, publication: Publication, live: frozenset[str]) -> bool:
    scope, target = job.manifest.scope.predicate, job.target
    parts = {"scope": scope, "beside": EVERYTHING}

    def digest(rows: DataFrame) -> Digest:
        return job.engine.digests(rows, parts)["scope"]

    wanted = digest(target.read(publication.staged, scope))
    if live:
        wanted += digest(target.read_files(publication.head, live, scope))
    return digest(target.read(publication.version, scope)) == wanted


def close(job: PublishJob, run: Run, publication: Publication, detail: str = "") -> None:
    supersede(job, publication)
    job.store.runs.transition(
        run,
        RunState.PUBLISHED,
        detail=detail,
        token=job.check_lease(),
        version=publication.version,
        generation=publication.generation,
    )
    point("publish.after-state")
