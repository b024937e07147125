"""Which published runs a newer one takes the place of, and what becomes of them when that one is undone."""

from __future__ import annotations

from dataclasses import dataclass

from backcast.errors import Drifted
from backcast.model.manifest import Manifest
from backcast.model.run import Publication, Run
from backcast.model.states import VISIBLE_STATES, RunState
from backcast.model.table import PublishMode
from backcast.publish.job import PublishJob, reach_of

_ALL = 100_000


def supersede(job: PublishJob, publication: Publication) -> None:
    """What this publish took the place of is now history."""
    newer = _Published(job.manifest, publication)
    for other in _visible(job):
        if other.state is RunState.PUBLISHED and _takes_over(job, newer, other):
            job.check_lease()
            job.store.runs.mark_superseded(other.run_id, publication.run_id)
            job.store.runs.transition(other, RunState.SUPERSEDED, detail=f"superseded by {publication.run_id}")


def hand_back(job: PublishJob) -> None:
    """What the run had taken the place of is published again, unless yet another one took its place, too."""
    for other in _visible(job):
        if other.superseded_by != job.run.run_id:
            continue
        heir = _heir(job, other)
        job.check_lease()
        if heir is None and other.state is RunState.SUPERSEDED:
            job.store.runs.transition(other, RunState.PUBLISHED, detail=f"{job.run.run_id} was undone")
        # Last, because only this mark leads a repeated undo back here.
        job.store.runs.mark_superseded(other.run_id, heir)


@dataclass(frozen=True, slots=True)
class _Published:
    """What one publish did, and what its run was allowed to do."""

    manifest: Manifest
    publication: Publication


def _visible(job: PublishJob) -> list[Run]:
    """The other runs whose rows are in the dataset, or were until others replaced them; newest first."""
    found = job.store.runs.runs(dataset=job.run.dataset, limit=_ALL)
    return [run for run in found if run.state in VISIBLE_STATES and run.run_id != job.run.run_id]


def _live(job: PublishJob, run: Run) -> Publication | None:
    """Its newest publish, unless that was taken back."""
    publications = job.store.runs.publications(run.run_id)
    return publications[-1] if publications and publications[-1].undone_at is None else None


def _heir(job: PublishJob, older: Run) -> str | None:
    """The newest of the other runs that took the place of this one, too."""
    mine = _live(job, older)
    found = [_live(job, each) for each in _visible(job) if each.run_id != older.run_id]
    later = [each for each in found if each and mine and each.published_at > mine.published_at]
    for each in sorted(later, key=lambda one: one.published_at, reverse=True):
        if _takes_over(job, _Published(job.store.runs.manifest(each.run_id), each), older):
            return each.run_id
    return None


def _takes_over(job: PublishJob, newer: _Published, run: Run) -> bool:
    """Whether the older publish could be undone only with rows of the newer one.

    Shared files tell, but not for ever: whoever compacts a table puts other files in their place. Of two runs that
    replace rows an overlap is enough: what the older one emptied, its undo would fill again beside the newer rows.
    """
    older = _live(job, run)
    if older is None:
        return False
    removed, theirs = frozenset(newer.publication.removed), frozenset(older.added)
    if removed & theirs:
        return True
    replaces = newer.manifest.settings.publish_mode is PublishMode.REPLACE
    if older.released_at is not None or not (removed or replaces):
        return False
    manifest = job.store.runs.manifest(run.run_id)
    if not newer.manifest.scope.meets(manifest.scope):
        return False
    if replaces and manifest.settings.publish_mode is PublishMode.REPLACE:
        return True
    try:
        there = job.target.files(newer.publication.version, reach_of(manifest)).paths
    except Drifted:
        return True
    return not theirs <= there | removed
