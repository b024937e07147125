"""Verbs of the people who agree to a run, or do not. None of them needs Spark or user code."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from backcast.approving import approved_by, need_of_run, require_approval, standing
from backcast.errors import InvalidRequest, NotApproved, Refused, StateConflict
from backcast.model.approval import GIVEN, REFUSED, Approvals, Person, as_data
from backcast.model.stage import recorded_staged
from backcast.model.states import VISIBLE_STATES, RunState
from backcast.model.verdict import Outcome, Review, outcome_of
from backcast.verbs.themed import Verbs

if TYPE_CHECKING:
    from backcast.model.need import ApprovalNeed
    from backcast.model.policy import Policy
    from backcast.model.run import Run
    from backcast.model.verdict import Verdict

_ENDED = (RunState.PUBLISHING, RunState.PUBLISHED, RunState.SUPERSEDED, RunState.UNDOING)
_GIVEN_UP = (RunState.REJECTED, RunState.CANCELLING, RunState.CANCELLED)
_AT_WORK = (RunState.RUNNING, RunState.STAGED, RunState.FAILED)
_NOT_STARTED = (RunState.PLANNED, RunState.APPROVED)
_NEXT_STEP = (*_NOT_STARTED, RunState.ACCEPTED, RunState.UNDONE)


class ApprovingVerbs(Verbs):
    def approvals(self, run_id: str) -> Approvals:
        """Who has agreed to the run, and who is missing."""
        reader = self.world.reader()
        return standing(self.world, reader, reader.run(run_id), self.world.clock.now())

    def must_confirm(self, run_id: str) -> bool:
        """Whether the next step of the run takes --yes. Raises NotApproved when somebody has to agree before it."""
        if self.world.policy() is None:
            return False
        reader = self.world.reader()
        run = reader.run(run_id)
        if run.state not in _NEXT_STEP:
            return False
        require_approval(self.world, run)
        need = need_of_run(self.world, reader, run)
        return need is not None and need.confirm

    def approve(self, run_id: str, *, role: str | None = None, comment: str = "") -> Run:
        """Agree to the run in one of one's roles; or, for one under review, accept what the gates noticed.

        The last approval that was missing makes a planned run an approved one.
        """
        runs = self.world.store().runs
        run = runs.run(run_id)
        if run.state is RunState.REVIEW:
            return self._accept(run, role, comment)
        if run.state in (*_ENDED, *_GIVEN_UP):
            hint = f"backcast status {run.run_id}"
            raise StateConflict(f"run {run.run_id} is {run.state}: there is nothing to approve", hint=hint)
        need, policy = need_of_run(self.world, runs, run), self.world.policy()
        if need is None or not need.roles:
            raise Refused(f"run {run.run_id} needs nobody's approval", hint=f"backcast status {run.run_id}")
        policy = _present(policy, run)
        person, now = self.world.person(), self.world.clock.now()
        found = standing(self.world, runs, run, now)
        if run.state in _AT_WORK and not found.missing:
            hint = f"backcast status {run.run_id}"
            raise StateConflict(f"run {run.run_id} is {run.state}: nobody's approval is missing", hint=hint)
        _refuse_own(need, person, run)
        role = _role(person, role, need.roles, prefer=found.missing)
        _refuse_twice(person, role, found)
        expires = now + timedelta(seconds=need.expires_seconds)
        data = as_data(person, role, comment, run.manifest_sha256, policy.sha256(), expires)
        runs.record(run.run_id, GIVEN, **data)
        return self._settled(run)

    def reject(self, run_id: str, *, role: str | None = None, comment: str) -> Run:
        """Say no: to a run that has not started, which is then given up, or to one under review."""
        if not comment.strip():
            raise InvalidRequest("why? whoever asked for the run must know what to change", hint="add --comment WHY")
        runs = self.world.store().runs
        run = runs.run(run_id)
        if run.state is RunState.CANCELLED:
            return run
        if run.state is RunState.REVIEW:
            person = self.world.person()
            role = _role(person, role, self._reviewers())
            said = _words(person, role)
            return runs.transition(
                run, RunState.REJECTED, detail=f"rejected by {said}: {comment}", **_told(person, role)
            )
        if run.state not in (*_NOT_STARTED, RunState.CANCELLING):
            verb = "undo" if run.state in VISIBLE_STATES else "status" if run.state is RunState.UNDONE else "cancel"
            hint = f"backcast {verb} {run.run_id}"
            raise StateConflict(f"run {run.run_id} is {run.state}: it has started", hint=hint)
        if run.state is not RunState.CANCELLING:
            run = self._refuse(run, role, comment)
        # Nothing was staged, so there is nothing to remove and no Spark to start.
        return runs.transition(run, RunState.CANCELLED, detail=run.detail)

    def _refuse(self, run: Run, role: str | None, comment: str) -> Run:
        runs, policy, person = self.world.store().runs, self.world.policy(), self.world.person()
        need = need_of_run(self.world, runs, run)
        asked = () if need is None else need.roles
        role = _role(person, role, () if policy is None else tuple(policy.roles), prefer=asked)
        detail = f"rejected by {_words(person, role)}: {comment}"
        given_up = runs.transition(run, RunState.CANCELLING, detail=detail)
        digest = "" if policy is None else policy.sha256()
        runs.record(run.run_id, REFUSED, **as_data(person, role, comment, run.manifest_sha256, digest))
        return given_up

    def _settled(self, run: Run) -> Run:
        """The run after an approval. Whoever else approves, or starts it, at the same time may have been faster."""
        runs = self.world.store().runs
        found = standing(self.world, runs, run, self.world.clock.now())
        if run.state is not RunState.PLANNED or not found.complete:
            return runs.run(run.run_id)
        try:
            return runs.transition(run, RunState.APPROVED, detail=approved_by(found))
        except StateConflict:
            after = runs.run(run.run_id)
            if after.state in (RunState.PLANNED, *_GIVEN_UP):
                raise
            return after

    def _accept(self, run: Run, role: str | None, comment: str) -> Run:
        """Accept a stage that no blocking check failed on. The verdict is that of the stage as it is now, or none."""
        if not comment.strip():
            raise InvalidRequest("what did you look at? it goes on record", hint="add --comment WHY")
        runs = self.world.store().runs
        verdict = _reviewable(run, runs.verdict(run.run_id), recorded_staged(runs.events(run.run_id)))
        person = self.world.person()
        need = need_of_run(self.world, runs, run)
        if need is not None:
            _refuse_own(need, person, run)
        role = _role(person, role, self._reviewers())
        review = Review(by=person.name, how=person.how, role=role, comment=comment, at=self.world.clock.now())
        runs.save_verdict(verdict.model_copy(update={"accepted": True, "review": review}))
        detail = f"accepted by {_words(person, role)}: {comment}"
        return runs.transition(run, RunState.ACCEPTED, detail=detail, **_told(person, role))

    def _reviewers(self) -> tuple[str, ...]:
        """Roles that may accept what the gates noticed; none without a policy: anybody may then."""
        policy = self.world.policy()
        return () if policy is None else policy.review or tuple(policy.roles)


def _present(policy: Policy | None, run: Run) -> Policy:
    if policy is None:
        raise NotApproved(
            f"the plan of {run.run_id} asks for approval, and the project has no policy any more",
            hint="name the policy file in backcast.yaml, or plan again",
        )
    return policy


def _reviewable(run: Run, verdict: Verdict | None, staged: str) -> Verdict:
    if verdict is None or outcome_of(verdict.checks) is not Outcome.REVIEW:
        raise StateConflict(f"run {run.run_id} has no verdict that a person could accept")
    if verdict.run_id != run.run_id or verdict.staged != staged:
        raise StateConflict(
            f"the verdict of {run.run_id} is about another stage", hint=f"backcast validate {run.run_id}"
        )
    return verdict


def _role(person: Person, asked: str | None, of: tuple[str, ...], prefer: tuple[str, ...] = ()) -> str:
    """The role in which a person speaks: one that is asked for and that this person holds.

    Without any role to choose from everybody speaks for themselves.
    """
    if not of:
        if asked is not None:
            raise InvalidRequest("there is no policy, so nobody has a role", hint="leave --as out")
        return ""
    who = f"{person.name} (known by {'the OS account' if person.how == 'os-user' else 'a token'})"
    held = [role for role in person.roles if role in of]
    wanted = f"asked for: {', '.join(of)}"
    if asked is not None:
        if asked in held:
            return asked
        if asked in person.roles:
            raise NotApproved(f"nobody is asked to agree as {asked}", hint=wanted)
        raise NotApproved(
            f"{who} does not hold the role {asked!r}",
            hint=f"roles of {person.name}: {', '.join(person.roles) or 'none'}",
        )
    if not held:
        raise NotApproved(f"{who} holds no role that is asked for", hint=wanted)
    found = [role for role in held if role in prefer] or held
    if len(found) > 1:
        raise InvalidRequest(
            f"{who} holds several roles that are asked for: {', '.join(found)}", hint=f"add --as {found[0]}"
        )
    return found[0]


def _refuse_own(need: ApprovalNeed, person: Person, run: Run) -> None:
    if not need.own_runs and person.names & set(need.planned_by):
        raise NotApproved(
            f"{person.name} planned {run.run_id} and cannot approve it", hint="somebody else must: own_runs is false"
        )


def _refuse_twice(person: Person, role: str, found: Approvals) -> None:
    before = found.of(person)
    if before is None or (before.role == role and (before.by == person.name or role not in found.missing)):
        return
    one = f"{before.by} has approved it as {before.role}"
    if before.by != person.name:
        shared = {before.account, before.login} & {person.account, person.login} - {None}
        one += f", from the OS account {' and '.join(sorted(map(str, shared)))} that {person.name} uses too"
    raise NotApproved(f"{one}: {role} must be another person", hint="two roles are two people on two accounts")


def _words(person: Person, role: str) -> str:
    return f"{person.name} as {role}" if role else person.name


def _told(person: Person, role: str) -> dict[str, Any]:
    login = {} if person.login in (None, person.account) else {"login": person.login}
    return {"by": person.name, "how": person.how, "account": person.account, "role": role, **login}
