"""Which published runs a newer one takes the place of, and what becomes of them when that one is undone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from backcast.errors import Drifted, Unavailable
from backcast.model.manifest import Manifest
from backcast.model.run import Publication, Run
from backcast.model.scope import Predicate
from backcast.model.states import VISIBLE_STATES, RunState
from backcast.model.table import PublishMode
from backcast.publish.job import PublishJob, reach_of

_ALL = 100_000


def supersede(job: PublishJob, publication: Publication) -> None:
    """What this publish took the place of is now history."""
    known = _Known(job, _visible(job))
    newer = _Published(job.run, publication)
    for other in known.others:
        if other.run.state is RunState.PUBLISHED and known.takes_over(newer, other):
            job.check_lease()
            job.store.runs.mark_superseded(other.run.run_id, publication.run_id)
            job.store.runs.transition(other.run, RunState.SUPERSEDED, detail=f"superseded by {publication.run_id}")


def hand_back(job: PublishJob) -> None:
    """What the run had taken the place of is published again, unless yet another one took its place, too."""
    visible = _visible(job)
    known = _Known(job, visible)
    for other in visible:
        if other.superseded_by != job.run.run_id:
            continue
        heir = known.heir(other)
        job.check_lease()
        if heir is None and other.state is RunState.SUPERSEDED:
            job.store.runs.transition(other, RunState.PUBLISHED, detail=f"{job.run.run_id} was undone")
        # Last, because only this mark leads a repeated undo back here.
        job.store.runs.mark_superseded(other.run_id, heir)


def _visible(job: PublishJob) -> list[Run]:
    """The other runs whose rows are in the dataset, or were until others replaced them; newest first."""
    found = job.store.runs.runs(dataset=job.run.dataset, limit=_ALL)
    return [run for run in found if run.state in VISIBLE_STATES and run.run_id != job.run.run_id]


@dataclass(frozen=True, slots=True)
class _Published:
    """A run and its newest publish, which was not taken back."""

    run: Run
    publication: Publication


class _Known:
    """What is on record about the other runs: asked for once, however many of them are compared."""

    def __init__(self, job: PublishJob, runs: Iterable[Run]) -> None:
        self._job, self._runs = job, runs
        self._manifests: dict[str, Manifest | None] = {job.run.run_id: job.manifest}
        self._files: dict[tuple[str, Predicate], frozenset[str] | None] = {}

    @cached_property
    def others(self) -> tuple[_Published, ...]:
        return tuple(self._live(self._runs))

    def heir(self, older: Run) -> str | None:
        """The newest of the other runs that took the place of this one, too."""
        mine = next((each for each in self.others if each.run.run_id == older.run_id), None)
        if mine is None:
            return None
        later = [each for each in self.others if each.publication.published_at > mine.publication.published_at]
        later.sort(key=lambda each: each.publication.published_at, reverse=True)
        return next((each.run.run_id for each in later if self.takes_over(each, mine)), None)

    def takes_over(self, newer: _Published, older: _Published) -> bool:
        """Whether the older publish could be undone only with rows of the newer one.

        Shared files tell, but not for ever: whoever compacts a table puts other files in their place. Of two runs that
        replace rows an overlap is enough: what the older one emptied, its undo would fill again beside the newer rows.
        """
        removed, theirs = frozenset(newer.publication.removed), frozenset(older.publication.added)
        if removed & theirs:
            return True
        if older.publication.released_at is not None:
            return False
        mine, its = self._manifest(newer.run), self._manifest(older.run)
        if mine is None or its is None or not mine.scope.meets(its.scope):
            return False
        replaces = mine.settings.publish_mode is PublishMode.REPLACE
        if replaces and its.settings.publish_mode is PublishMode.REPLACE:
            return True
        if not (removed or replaces):
            return False
        there = self._there(newer.publication.version, reach_of(its))
        return there is None or not theirs <= there | removed

    def _live(self, runs: Iterable[Run]) -> Iterator[_Published]:
        for run in runs:
            publications = self._job.store.runs.publications(run.run_id)
            if publications and publications[-1].undone_at is None:
                yield _Published(run, publications[-1])

    def _manifest(self, run: Run) -> Manifest | None:
        """None for one that is damaged: what another run may do does not depend on it. Its files still tell."""
        if run.run_id not in self._manifests:
            try:
                self._manifests[run.run_id] = self._job.store.runs.manifest(run.run_id)
            except Unavailable:
                self._manifests[run.run_id] = None
        return self._manifests[run.run_id]

    def _there(self, version: str, reach: Predicate) -> frozenset[str] | None:
        """Files of that version; None when it is gone."""
        if (version, reach) not in self._files:
            try:
                self._files[version, reach] = self._job.target.files(version, reach).paths
            except Drifted:
                self._files[version, reach] = None
        return self._files[version, reach]
