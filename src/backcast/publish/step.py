"""Step 4: verdict -> table.

One commit, decided on the head, fenced against a second one, read back after. Metadata only, where the target can.
"""

from __future__ import annotations

from backcast.errors import Conflict, Drifted, NotValidated, OutcomeUnknown, Refused, ScopeChanged, StateConflict
from backcast.faults import point
from backcast.model.amendment import Amendment, amendments
from backcast.model.lineage import amendment_properties, commit_properties, witness_properties
from backcast.model.manifest import LivePolicy, Manifest
from backcast.model.run import Effect, Publication, Run
from backcast.model.stage import head_tag, publish_fence, recorded_stage, recorded_staged
from backcast.model.states import EffectState, RunState
from backcast.model.table import Change, Movement, NetChange, PublishMode
from backcast.model.verdict import Outcome, Verdict
from backcast.publish.decide import Decision, decide, decide_append, decide_merge
from backcast.publish.job import ATTEMPTS, PublishJob
from backcast.publish.keys import RunKeys
from backcast.publish.landed import close, finish

_PAUSE = 0.2


def publish(job: PublishJob, verdict: Verdict | None) -> Publication:
    """Commit exactly what the verdict is about.

    A publish that was interrupted is finished or tried again, never doubled.
    """
    done = recover(job)
    if done is not None:
        return done
    generation = len(job.store.runs.publications(job.run.run_id)) + 1
    run = job.run
    try:
        verdict = _accepted(run, verdict)
        _refuse_drift(job)
        net = _net_change(job, verdict)
        point("publish.before-intent")
        run = run if run.state is RunState.PUBLISHING else _enter(job, generation)
        keys = RunKeys(job, net)
        effect, version = _commit(job, verdict, net, generation, keys)
    except (Refused, ScopeChanged, StateConflict) as error:
        _step_back(job, run, error.message)
        if generation > 1:
            # A run that was undone has nothing left to cancel.
            error.hint = error.hint.removeprefix(f"backcast cancel {run.run_id}, then ")
        raise
    publication = finish(job, run, effect, version)
    keys.release()
    return publication


def withdraw(job: PublishJob, why: str) -> None:
    """What must not be published any more goes back, if it was under way and its commit did not land."""
    if job.run.state is RunState.PUBLISHING and _landed(job) is None and not _known(job):
        _step_back(job, job.run, why)


def _step_back(job: PublishJob, run: Run, why: str) -> None:
    """Also a publish that was interrupted and is refused now: it could neither be cancelled nor undone."""
    if run.state is RunState.PUBLISHING:
        again = bool(job.store.runs.publications(run.run_id))
        back = RunState.UNDONE if again else RunState.ACCEPTED
        job.store.runs.transition(run, back, detail=why, token=job.check_lease())


def _enter(job: PublishJob, generation: int) -> Run:
    return job.store.runs.transition(job.run, RunState.PUBLISHING, token=job.check_lease(), generation=generation)


def refuse_unaccepted(run: Run) -> None:
    """Raises NotValidated for a run that validation, or a person, did not accept. Needs nothing but its state."""
    if run.state is RunState.REJECTED:
        raise NotValidated(f"run {run.run_id} was rejected: {run.detail}", hint=f"backcast validate {run.run_id}")
    if run.state is RunState.REVIEW:
        hint = f"backcast diff {run.run_id}, then backcast approve {run.run_id} --comment WHY"
        raise NotValidated(f"run {run.run_id} waits for a person: {run.detail}", hint=hint)


def _accepted(run: Run, verdict: Verdict | None) -> Verdict:
    refuse_unaccepted(run)
    if run.state not in (RunState.ACCEPTED, RunState.UNDONE, RunState.PUBLISHING):
        raise StateConflict(
            f"run {run.run_id} is {run.state} and cannot be published", hint=f"backcast status {run.run_id}"
        )
    # Not only what the verdict says of itself: whoever wrote it down, a failed blocking check is never published.
    sound = verdict is not None and verdict.accepted and verdict.outcome is Outcome.ACCEPTED
    if verdict is None or not sound or verdict.run_id != run.run_id:
        raise NotValidated(f"run {run.run_id} has no accepted verdict", hint=f"backcast validate {run.run_id}")
    return verdict


def _net_change(job: PublishJob, verdict: Verdict) -> NetChange:
    """The staged change once more, which must be the one that was validated."""
    events = job.store.runs.events(job.run.run_id)
    stage = recorded_stage(job.run.run_id, events)
    if (stage.base, recorded_staged(events)) != (verdict.base, verdict.staged):
        raise NotValidated("the stage was amended after its verdict", hint=f"backcast validate {job.run.run_id}")
    net = job.target.net_change(stage, verdict.staged, job.manifest.scope.predicate)
    # Files that a scope cuts, or that a merge wrote anew, also hold rows beside it.
    cut = job.manifest.scope.exact or job.mode is PublishMode.MERGE
    if net.digest() != verdict.net_change or (net.outside and not cut):
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


def _commit(job: PublishJob, verdict: Verdict, net: NetChange, generation: int, keys: RunKeys) -> tuple[Effect, str]:
    """Decide on the head, commit validated from it; a change in scope or a lost race starts over, a bounded number of
    times.
    """
    run_id = job.run.run_id
    fence, amended = publish_fence(run_id, generation), amendments(job.store.runs.events(run_id))
    compared: frozenset[str] = frozenset()
    for attempt in range(ATTEMPTS):
        # Each time anew: a change of schema is one of the commits that a lost race can be lost against.
        _refuse_drift(job)
        decision, movement = _decided(job, verdict, net, _policy(job.manifest, generation))
        head = job.target.facts().version if movement is None else movement.head
        if movement is not None and not decision.live <= compared:
            # Comparing keys takes a Spark job. Commits land during it, so the head is looked at again after it.
            keys.refuse_shared(movement, decision.live - compared, _policy(job.manifest, generation))
            compared |= decision.live
            continue
        change = Change(
            fence=fence,
            head=head,
            scope=job.scope,
            add_from=verdict.staged,
            add=frozenset(file.path for file in net.added),
            remove=decision.remove,
            guard_rows=movement is not None,
            properties=commit_properties(job.manifest, run_id, "publish")
            | amendment_properties(amended)
            | witness_properties(job.store.runs.events(run_id))
            | {"backcast.publish-id": fence},
            keep=((head_tag(run_id, generation), head),) if decision.compacted and head else (),
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


def _decided(job: PublishJob, verdict: Verdict, net: NetChange, policy: LivePolicy) -> tuple[Decision, Movement | None]:
    """What goes, and how the scope moved. An append does not look."""
    run_id = job.run.run_id
    if job.mode is PublishMode.APPEND:
        return decide_append(net, run_id), None
    movement = job.target.movement(verdict.base, job.scope)
    if job.mode is PublishMode.MERGE:
        return decide_merge(net, movement, policy, run_id), movement
    return decide(net, movement, policy, run_id, exact=job.manifest.scope.exact), movement


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


def recover(job: PublishJob) -> Publication | None:
    """Finish a publish whose process died after its commit landed. None when there is none or it did not land."""
    if job.run.state is not RunState.PUBLISHING:
        return None
    landed = _landed(job)
    if landed is not None:
        return finish(job, job.run, *landed)
    known = _known(job)
    if known:
        close(job, job.run, known[-1])
        return known[-1]
    return None


def _landed(job: PublishJob) -> tuple[Effect, str] | None:
    """The commit that a process which died was about to make, and its version; intents of which nothing came end."""
    for effect in job.store.effects.open(job.run.run_id):
        if effect.name != "publish":
            continue
        version = job.target.probe(effect.key)
        if version is not None:
            return effect, version
        job.store.effects.end(effect, EffectState.NOT_LANDED, reason="the table has no such commit")
    return None


def _known(job: PublishJob) -> list[Publication]:
    """Publishes on record that nobody took back."""
    return [each for each in job.store.runs.publications(job.run.run_id) if each.undone_at is None]
