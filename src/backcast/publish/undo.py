"""Take a publish back in one commit and keep every row that the live writer wrote since.

First the proof: every published file is still live, every file it replaced is in storage, no delete touches either.
Without it an undo can double, lose or resurrect rows, so it is refused, or done by rewriting when asked.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from backcast.errors import Conflict, OutcomeUnknown, Refused, ScopeChanged, StateConflict, UndoRefused
from backcast.faults import point
from backcast.model.lineage import commit_properties, witness_properties
from backcast.model.report import Progress
from backcast.model.run import Effect, Publication, Run
from backcast.model.stage import undo_fence
from backcast.model.states import EffectState, RunState
from backcast.model.table import Change, PublishMode, StageWrite
from backcast.publish.job import ATTEMPTS, PublishJob
from backcast.publish.landed import landed_rewrite
from backcast.publish.rewriting import described_by, doubled_keys, replaced_since, restaged, without
from backcast.publish.step import retryable
from backcast.publish.supersede import hand_back


def undo(job: PublishJob, *, rewrite: bool = False) -> Publication:
    """The publication with its undo recorded. Repeating it after a crash finishes what was begun."""
    done = _recover(job)
    if done is not None:
        return done
    publication = _newest(job)
    point("undo.before-intent")
    run = job.run
    if run.state is not RunState.UNDOING:
        run = job.store.runs.transition(
            run, RunState.UNDOING, token=job.check_lease(), generation=publication.generation
        )
    try:
        effect, version = _commit(job, publication, rewrite=rewrite)
    except (Refused, ScopeChanged, StateConflict) as error:
        job.store.runs.transition(
            run, RunState.PUBLISHED, detail=f"undo refused: {error.message}", token=job.check_lease()
        )
        raise
    return _finish(job, run, publication, effect, version)


def _newest(job: PublishJob) -> Publication:
    run_id = job.run.run_id
    if job.run.state is RunState.SUPERSEDED:
        raise UndoRefused(
            f"run {run_id} was superseded by {job.run.superseded_by}",
            hint=f"undo that one first: backcast undo {job.run.superseded_by}",
        )
    live = [each for each in job.store.runs.publications(run_id) if each.undone_at is None]
    if job.run.state not in (RunState.PUBLISHED, RunState.UNDOING) or not live:
        raise StateConflict(
            f"run {run_id} is {job.run.state}: there is nothing to undo", hint=f"backcast status {run_id}"
        )
    if live[-1].released_at is not None:
        raise UndoRefused(
            f"the undo window of run {run_id} ended and gc released what an undo needs",
            hint="restate the window again with the old version of the code",
        )
    return live[-1]


def _commit(job: PublishJob, publication: Publication, *, rewrite: bool) -> tuple[Effect, str]:
    # Before the head is looked at: where files are listed by a job over the log, what came since is then followed.
    described = described_by(job, publication)
    for attempt in range(ATTEMPTS):
        problem, head = _proof(job, publication)
        if problem is not None and (not rewrite or problem.attributes.get("rewritable") is False):
            raise problem
        if problem is None:
            change = _inverse(job, publication, head, described)
        else:
            rewriting = _rewritten if job.mode is PublishMode.REPLACE else _rewritten_beside
            change = rewriting(job, publication, head)
        job.check_lease()
        effect = job.store.effects.begin(
            job.run.run_id,
            "undo",
            change.fence,
            generation=publication.generation,
            head=head,
            rewrite=problem is not None,
        )
        point("undo.after-intent")
        try:
            return effect, job.target.commit(change)
        except OutcomeUnknown:
            raise
        except (Conflict, Refused) as error:
            late = job.target.probe(change.fence)
            if late is not None:
                # A process that lost its lease in the middle of this very commit landed it after all.
                return effect, late
            job.store.effects.end(effect, EffectState.NOT_LANDED, reason=error.message)
            if not retryable(error):
                raise
        job.clock.sleep(0.2 * (attempt % 5))
    raise ScopeChanged(
        f"the table is committed to so often that {ATTEMPTS} attempts to undo in between failed; nothing was undone",
        hint=f"try again in a quieter moment: backcast undo {job.run.run_id}",
    )


def _proof(job: PublishJob, publication: Publication) -> tuple[UndoRefused | None, str | None]:
    """The reason why the exact inverse is not safe, or None; and the head it was checked on."""
    head = job.target.facts().version
    now = job.target.files(head, job.reach)
    run_id = publication.run_id
    gone = frozenset(publication.added) - now.paths
    rewriting = f"backcast undo {run_id} --rewrite"
    # First, because to rewrite takes these files too.
    lost = job.target.missing(frozenset(publication.removed))
    if lost:
        reason = f"{len(lost)} of {len(publication.removed)} files that the publish replaced are gone from storage"
        return UndoRefused(
            reason, hint="restate the window again with the old version of the code", rewritable=False
        ), head
    if gone:
        reason = f"{len(gone)} of {len(publication.added)} published files were since compacted, updated or deleted"
        return UndoRefused(reason, hint=f"{rewriting} computes the old state row by row"), head
    mine = frozenset(publication.added)
    whole = job.mode is PublishMode.REPLACE
    if any(file.deletes for file in now.files if file.path in mine) or (
        whole and job.target.files(head, job.manifest.scope.predicate).has_deletes
    ):
        return UndoRefused(
            "rows in scope were deleted since by delete files; an undo would bring them back", hint=rewriting
        ), head
    return (doubled_keys(job, publication, now) if not whole else None), head


def _inverse(job: PublishJob, publication: Publication, head: str | None, described: str | None) -> Change:
    return Change(
        fence=undo_fence(publication.run_id, publication.generation),
        head=head,
        scope=job.manifest.scope.predicate,
        add_from=described,
        add=frozenset(publication.removed),
        remove=frozenset(publication.added),
        guard_rows=False,
        properties=_properties(job, publication),
    )


def _rewritten(job: PublishJob, publication: Publication, head: str | None) -> Change:
    """`base + (now except published)` written to a branch at the head, as one change.

    Refuses when a published row is gone.
    """
    scope, target, run_id = job.manifest.scope.predicate, job.target, publication.run_id
    now, published = target.read(head, scope), target.read(publication.version, scope)
    rows = target.read(publication.base, scope).unionByName(without(job, now, published))
    write = StageWrite(("undo",), job.check_lease(), scope, exact=job.manifest.scope.exact)
    net = restaged(job, publication, head, write, rows)
    if net.outside and not job.manifest.scope.exact:
        raise UndoRefused(
            "the rewritten files are not proven to lie in the scope", hint="report this", files=len(net.outside)
        )
    return Change(
        fence=undo_fence(run_id, publication.generation),
        head=head,
        scope=scope,
        add_from=net.staged,
        add=frozenset(file.path for file in net.added),
        remove=frozenset(file.path for file in net.removed),
        guard_rows=True,
        properties=_properties(job, publication) | {"backcast.undo-mode": "rewrite"},
    )


def _rewritten_beside(job: PublishJob, publication: Publication, head: str | None) -> Change:
    """The same where rows were added or merged: only files in which the published rows can be by now are written."""
    doubled = doubled_keys(job, publication, job.target.files(head, job.reach))
    if doubled is not None:
        raise doubled
    rows, out = replaced_since(job, publication, head)
    write = StageWrite(("undo",), job.check_lease(), job.manifest.scope.predicate, exact=False, mode=PublishMode.APPEND)
    net = restaged(job, publication, head, write, rows)
    return Change(
        fence=undo_fence(publication.run_id, publication.generation),
        head=head,
        scope=job.manifest.scope.predicate,
        add_from=net.staged,
        add=frozenset(file.path for file in net.added),
        remove=out,
        guard_rows=False,
        properties=_properties(job, publication) | {"backcast.undo-mode": "rewrite"},
    )


def _properties(job: PublishJob, publication: Publication) -> dict[str, str]:
    return (
        commit_properties(job.manifest, publication.run_id, "undo")
        | witness_properties(job.store.runs.events(publication.run_id))
        | {"backcast.undo-of": publication.fence}
    )


def withdraw(job: PublishJob, why: str) -> None:
    """An undo that broke off is given up, if its commit did not land: the run is published as before."""
    if job.run.state is RunState.UNDOING and _landed(job) is None and _recorded(job) is None:
        job.store.runs.transition(job.run, RunState.PUBLISHED, detail=why, token=job.check_lease())


def _recover(job: PublishJob) -> Publication | None:
    """Finish an undo whose process died after its commit landed."""
    if job.run.state is not RunState.UNDOING:
        return None
    landed = _landed(job)
    if landed is not None:
        effect, version = landed
        publications = job.store.runs.publications(job.run.run_id)
        mine = next(each for each in publications if each.generation == int(effect.data["generation"]))
        return _finish(job, job.run, mine, effect, version)
    recorded = _recorded(job)
    if recorded is not None:
        _close(job, job.run, recorded)
    return recorded


def _landed(job: PublishJob) -> tuple[Effect, str] | None:
    """The commit that a process which died was about to make, and its version; intents of which nothing came end."""
    for effect in job.store.effects.open(job.run.run_id):
        if effect.name != "undo":
            continue
        version = job.target.probe(effect.key)
        if version is not None:
            return effect, version
        job.store.effects.end(effect, EffectState.NOT_LANDED, reason="the table has no such commit")
    return None


def _recorded(job: PublishJob) -> Publication | None:
    """The newest publish, if it is on record as undone."""
    publications = job.store.runs.publications(job.run.run_id)
    return publications[-1] if publications and publications[-1].undone_at is not None else None


def _finish(job: PublishJob, run: Run, publication: Publication, effect: Effect, version: str) -> Publication:
    landed_rewrite(job, version, effect.data["head"])
    now = job.clock.now()
    changed: dict[str, Any] = {"undo_fence": effect.key, "undo_version": version, "undone_at": now}
    if publication.undo_until < now:
        changed["undo_until"] = now + timedelta(seconds=job.manifest.settings.undo_window_seconds)
    undone = publication.model_copy(update=changed)
    job.store.runs.save_publication(undone, token=job.check_lease())
    point("undo.after-record")
    job.store.effects.end(effect, EffectState.LANDED, version=version)
    _close(job, run, undone)
    job.on_progress(Progress(step="undo", message=f"undone in version {version}"))
    return undone


def _close(job: PublishJob, run: Run, publication: Publication) -> None:
    hand_back(job)
    job.store.runs.transition(run, RunState.UNDONE, token=job.check_lease(), version=publication.undo_version)
    point("undo.after-state")
