"""Step 4: verdict -> table.

One commit, decided on the head, fenced against a second one, read back after. Metadata only, where the target can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from backcast.errors import Conflict, Drifted, NotValidated, OutcomeUnknown, Refused, ScopeChanged, StateConflict
from backcast.faults import point
from backcast.model.amendment import Amendment, amendments
from backcast.model.lineage import amendment_properties, commit_properties
from backcast.model.manifest import LivePolicy, Manifest
from backcast.model.report import OnProgress, Progress
from backcast.model.run import Effect, Publication, Run
from backcast.model.scope import EVERYTHING
from backcast.model.stage import head_tag, publish_fence, recorded_stage
from backcast.model.states import EffectState, RunState
from backcast.model.table import Change, NetChange, Rewrite
from backcast.model.verdict import Verdict
from backcast.model.words import many
from backcast.ports import Clock, Engine, Store, Target
from backcast.publish.decide import decide

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.digest import Digest

ATTEMPTS = 20
_PAUSE = 0.2

CheckLease = Callable[[], int]
"""The token of the run's lease, if it is certainly still ours; raises LeaseHeld otherwise."""


@dataclass(frozen=True, slots=True)
class PublishJob:
    """One process publishing or undoing one run, under its lease. `token` fences every change of state."""

    run: Run
    manifest: Manifest
    store: Store
    target: Target
    engine: Engine
    clock: Clock
    check_lease: CheckLease
    on_progress: OnProgress


def publish(job: PublishJob, verdict: Verdict | None) -> Publication:
    """Commit exactly what the verdict is about.

    A publish that was interrupted is finished or tried again, never doubled.
    """
    done = recover(job)
    if done is not None:
        return done
    verdict = _accepted(job.run, verdict)
    generation = len(job.store.runs.publications(job.run.run_id)) + 1
    run = job.run
    try:
        _refuse_drift(job)
        net = _net_change(job, verdict)
        point("publish.before-intent")
        run = run if run.state is RunState.PUBLISHING else _enter(job, generation)
        effect, version = _commit(job, verdict, net, generation)
    except (Refused, ScopeChanged, StateConflict) as error:
        # Also a publish that was interrupted and is refused now goes back: it could neither be cancelled nor undone.
        if run.state is RunState.PUBLISHING:
            back = RunState.UNDONE if generation > 1 else RunState.ACCEPTED
            job.store.runs.transition(run, back, detail=error.message, token=job.check_lease())
        raise
    return finish(job, run, effect, version)


def _enter(job: PublishJob, generation: int) -> Run:
    return job.store.runs.transition(job.run, RunState.PUBLISHING, token=job.check_lease(), generation=generation)


def _accepted(run: Run, verdict: Verdict | None) -> Verdict:
    if run.state is RunState.REJECTED:
        raise NotValidated(f"run {run.run_id} was rejected: {run.detail}", hint=f"backcast validate {run.run_id}")
    if run.state not in (RunState.ACCEPTED, RunState.UNDONE, RunState.PUBLISHING):
        raise StateConflict(
            f"run {run.run_id} is {run.state} and cannot be published", hint=f"backcast status {run.run_id}"
        )
    if verdict is None or not verdict.accepted or verdict.run_id != run.run_id:
        raise NotValidated(f"run {run.run_id} has no accepted verdict", hint=f"backcast validate {run.run_id}")
    return verdict


def _net_change(job: PublishJob, verdict: Verdict) -> NetChange:
    """The staged change once more, which must be the one that was validated."""
    stage = recorded_stage(job.run.run_id, job.store.runs.events(job.run.run_id))
    if stage.base != verdict.base:
        raise NotValidated("the stage was amended after its verdict", hint=f"backcast validate {job.run.run_id}")
    net = job.target.net_change(stage, verdict.staged, job.manifest.scope.predicate)
    if net.digest() != verdict.net_change or (net.outside and not job.manifest.scope.exact):
        raise NotValidated("the stage is not the one that was validated", hint=f"backcast validate {job.run.run_id}")
    return net


def _refuse_drift(job: PublishJob) -> None:
    """The table must still be the planned one: staged files of another schema would be read as something else."""
    identity, planned = job.target.facts().identity, job.manifest.target.identity
    moved = [name for name in type(identity).model_fields if getattr(identity, name) != getattr(planned, name)]
    if moved:
        raise Drifted(
            f"the table's {', '.join(moved)} changed since the plan",
            hint=f"backcast cancel {job.run.run_id}, then plan again",
        )


def _commit(job: PublishJob, verdict: Verdict, net: NetChange, generation: int) -> tuple[Effect, str]:
    """Decide on the head, commit validated from it; a change in scope or a lost race starts over, a bounded number of
    times.
    """
    scope, run_id = job.manifest.scope, job.run.run_id
    fence, amended = publish_fence(run_id, generation), amendments(job.store.runs.events(run_id))
    compared: frozenset[str] = frozenset()
    for attempt in range(ATTEMPTS):
        # Each time anew: a change of schema is one of the commits that a lost race can be lost against.
        _refuse_drift(job)
        movement = job.target.movement(verdict.base, scope.predicate)
        decision = decide(net, movement, _policy(job.manifest, generation), run_id, exact=scope.exact)
        if not decision.live <= compared:
            # Comparing keys takes a Spark job. Commits land during it, so the head is looked at again after it.
            _refuse_shared_keys(job, verdict, movement.head, decision.live - compared)
            compared |= decision.live
            continue
        change = Change(
            fence=fence,
            head=movement.head,
            scope=scope.predicate,
            add_from=verdict.staged,
            add=frozenset(file.path for file in net.added),
            remove=decision.remove,
            guard_rows=True,
            properties=commit_properties(job.manifest, run_id, "publish")
            | amendment_properties(amended)
            | {"backcast.publish-id": fence},
            keep=((head_tag(run_id, generation), movement.head),) if decision.compacted and movement.head else (),
        )
        job.check_lease()
        effect = _intend(job, change, verdict, generation=generation, live=sorted(decision.live), amended=amended)
        point("publish.after-intent")
        try:
            return effect, job.target.commit(change)
        except OutcomeUnknown:
            raise
        except (Conflict, Refused) as error:
            late = job.target.probe(fence)
            if late is not None:
                # A process that lost its lease in the middle of this very commit landed it after all.
                return effect, late
            job.store.effects.end(effect, EffectState.NOT_LANDED, reason=error.message)
            if not retryable(error):
                raise
        job.clock.sleep(_PAUSE * (attempt % 5))
    raise ScopeChanged(
        f"{ATTEMPTS} attempts to publish failed because others commit to the table all the time; nothing was published",
        hint=f"try again in a quieter moment: backcast publish {run_id}",
    )


def _intend(
    job: PublishJob,
    change: Change,
    verdict: Verdict,
    *,
    generation: int,
    live: list[str],
    amended: tuple[Amendment, ...],
) -> Effect:
    """Write down what is about to be committed: all that a successor needs to finish it."""
    return job.store.effects.begin(
        job.run.run_id,
        "publish",
        change.fence,
        generation=generation,
        base=verdict.base,
        staged=verdict.staged,
        head=change.head,
        added=sorted(change.add),
        removed=sorted(change.remove),
        live=live,
        amendment=len(amended),
    )


def _policy(manifest: Manifest, generation: int) -> LivePolicy:
    """A run that was published before is not staged again: a cancel would leave that publish's tags behind."""
    policy = manifest.settings.live_policy
    return LivePolicy.FAIL if policy is LivePolicy.RESTAGE and generation > 1 else policy


def retryable(error: Exception) -> bool:
    """A head that moved may have moved elsewhere; a fence that exists, a refusal and a changed scope are final."""
    return isinstance(error, Conflict) and not isinstance(error, StateConflict | ScopeChanged)


def _refuse_shared_keys(job: PublishJob, verdict: Verdict, head: str | None, live: frozenset[str]) -> None:
    """Live policy keep: a live row with a restated row's key would be a double."""
    scope = job.manifest.scope.predicate
    arrived = job.target.read_files(head, live, scope)
    shared = job.engine.shared_keys(arrived, job.target.read(verdict.staged, scope), job.manifest.settings.key)
    if shared:
        raise ScopeChanged(
            f"live rows arrived with keys that the run restates, for example {', '.join(shared[:3])}",
            hint=f"backcast cancel {job.run.run_id}, then plan again so that they are restated too",
        )


def recover(job: PublishJob) -> Publication | None:
    """Finish a publish whose process died after its commit landed. None when there is none or it did not land."""
    if job.run.state is not RunState.PUBLISHING:
        return None
    for effect in job.store.effects.open(job.run.run_id):
        if effect.name != "publish":
            continue
        version = job.target.probe(effect.key)
        if version is not None:
            return finish(job, job.run, effect, version)
        job.store.effects.end(effect, EffectState.NOT_LANDED, reason="the table has no such commit")
    known = [each for each in job.store.runs.publications(job.run.run_id) if each.undone_at is None]
    if known:
        _close(job, job.run, known[-1])
        return known[-1]
    return None


def finish(job: PublishJob, run: Run, effect: Effect, version: str) -> Publication:
    """Read back, record, close. Everything here can be repeated."""
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
    _read_back(job, publication, frozenset(data["live"]), rewritten=rewrite is not None)
    job.store.runs.save_publication(publication)
    point("publish.after-record")
    job.store.effects.end(effect, EffectState.LANDED, version=version)
    point("publish.before-state")
    _close(job, run, publication)
    return publication


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


def _read_back(job: PublishJob, publication: Publication, live: frozenset[str], *, rewritten: bool) -> None:
    """The published version must hold, in the scope, exactly the validated files and the live ones that were kept.

    Files never change once written, so equal files are equal rows, and no data file has to be read. Only where the
    target had to write the rows again, rows are compared.
    """
    scope = job.manifest.scope.predicate
    now = job.target.files(publication.version, scope)
    wanted = job.target.files(publication.staged, scope).paths | live
    same = _same_rows(job, publication, live) if rewritten else now.paths == wanted
    if not same or now.has_deletes:
        job.store.runs.record(
            publication.run_id,
            "publish.read-back-differs",
            missing=len(wanted - now.paths),
            extra=len(now.paths - wanted),
        )
        raise OutcomeUnknown(
            f"version {publication.version} was published but does not hold what was validated",
            hint=f"look at the table before anything else; to take it back: backcast undo {publication.run_id}",
        )
    job.on_progress(
        Progress(
            step="publish",
            message=f"read back {many(now.rows, 'row')} in {many(len(now.files), 'file')}",
            rows=now.rows,
        )
    )


def _same_rows(job: PublishJob, publication: Publication, live: frozenset[str]) -> bool:
    scope, target = job.manifest.scope.predicate, job.target
    parts = {"scope": scope, "beside": EVERYTHING}

    def digest(rows: DataFrame) -> Digest:
        return job.engine.digests(rows, parts)["scope"]

    wanted = digest(target.read(publication.staged, scope))
    if live:
        wanted += digest(target.read_files(publication.head, live, scope))
    return digest(target.read(publication.version, scope)) == wanted


def _close(job: PublishJob, run: Run, publication: Publication) -> None:
    _supersede(job, publication)
    job.store.runs.transition(
        run,
        RunState.PUBLISHED,
        token=job.check_lease(),
        version=publication.version,
        generation=publication.generation,
    )
    point("publish.after-state")


def _supersede(job: PublishJob, publication: Publication) -> None:
    """Published runs on the same dataset whose files this publish took out are now history."""
    removed = frozenset(publication.removed)
    for other in job.store.runs.runs(dataset=job.run.dataset, limit=1000):
        if other.run_id == publication.run_id or other.state is not RunState.PUBLISHED:
            continue
        theirs = [each for each in job.store.runs.publications(other.run_id) if each.undone_at is None]
        if theirs and removed & frozenset(theirs[-1].added):
            job.store.runs.mark_superseded(other.run_id, publication.run_id)
            job.store.runs.transition(other, RunState.SUPERSEDED, detail=f"superseded by {publication.run_id}")
