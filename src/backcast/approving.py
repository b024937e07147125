"""What people must have said before a run may start and before it may be published. Needs no Spark and no user code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest, NotApproved, UnknownName
from backcast.model.approval import Approvals, approvals
from backcast.model.archiving import REFERENCE
from backcast.model.need import ApprovalNeed, stricter
from backcast.model.policy import need_under, reach_of
from backcast.model.states import OPEN_STATES, RunState
from backcast.recorded import state_told
from backcast.run.spending import seconds_spent

if TYPE_CHECKING:
    from datetime import datetime

    from backcast.model.approval import Approval, Person
    from backcast.model.manifest import Manifest
    from backcast.model.report import Status
    from backcast.model.run import Run
    from backcast.ports import RunReader
    from backcast.world import World


_WAITING = (RunState.PLANNED, RunState.APPROVED, RunState.ACCEPTED)


def need_of(world: World, manifest: Manifest, staged_rows: int = 0, seconds: float = 0.0) -> ApprovalNeed | None:
    """What the plan recorded and what the policy says now, whichever asks for more.

    A run that staged more rows than were expected, or cost more in the time that its jobs took, needs whoever a plan of
    that size would have needed.
    """
    planned, policy = manifest.approval, world.policy()
    if policy is None or asks_nobody(manifest):
        return planned
    reach = planned.reach if planned is not None else reach_of(manifest, None, whole_table=False)
    cost = reach.cost
    if cost is not None and policy.prices is not None:
        cost = max(cost, policy.prices.cost((staged_rows, staged_rows), (seconds, seconds))[1])
    found = {"tier": _tier(world, manifest) or reach.tier, "rows": max(reach.rows, staged_rows), "cost": cost}
    reach = reach.model_copy(update=found)
    if planned is not None:
        return stricter(planned, need_under(policy, reach, planned.planned_by))
    # Without a policy nobody looked whether it is the whole table: it is held to what either would need.
    whole = reach.model_copy(update={"whole_table": True})
    return stricter(need_under(policy, reach, ()), need_under(policy, whole, ()))


def planner(person: Person) -> tuple[str, ...]:
    """How the manifest remembers who planned."""
    return tuple(dict.fromkeys((person.name, person.account, person.login or person.account)))


def asks_nobody(manifest: Manifest) -> bool:
    """A copy of a topic adds raw records to its own archive: no number that anybody reads changes."""
    return manifest.code.transform == REFERENCE


def need_of_run(world: World, reader: RunReader, run: Run) -> ApprovalNeed | None:
    """What the run needs, by its plan and by what it staged and spent."""
    run_id = run.run_id
    verdict, spent = reader.verdict(run_id), seconds_spent(reader.stage_records(run_id), reader.events(run_id))
    return need_of(world, reader.manifest(run_id), 0 if verdict is None else verdict.rows, spent)


def standing(world: World, reader: RunReader, run: Run, now: datetime | None) -> Approvals:
    """Who has agreed to the run and who is missing, at that time; without one, whoever agreed while it mattered."""
    need, policy = need_of_run(world, reader, run), world.policy()

    def holds(said: Approval) -> bool:
        return now is None or policy is None or said.role in policy.roles_of(said.by, said.how, said.account)

    return approvals(need, reader.events(run.run_id), run.manifest_sha256, now, holds)


def require_approval(world: World, run: Run) -> Approvals:
    """Raises NotApproved unless everybody who must agree has done so and still stands by it.

    A publish that was under way when its process died may be finished, whatever has expired or become stricter since:
    readers may see it already, and nobody could approve it any more.
    """
    reader = world.reader()
    if run.state is RunState.PUBLISHING and state_told(reader.events(run.run_id)) == run.state:
        recorded = reader.manifest(run.run_id).approval
        found = approvals(recorded, reader.events(run.run_id), run.manifest_sha256, None)
    else:
        found = standing(world, reader, run, world.clock.now())
    if found.refused is not None:
        who = found.refused
        raise NotApproved(
            f"{who.by} rejected run {run.run_id}: {who.comment}", hint="plan again with what was asked for"
        )
    if found.needed and reader.verify_events(run.run_id) is not None:
        raise NotApproved(
            f"the history of run {run.run_id} was changed by another hand: its approvals prove nothing",
            hint="plan again, and ask who can write to the store",
        )
    if found.missing:
        said = [f"{role} ({why})" if (why := found.why_missing(role)) else role for role in found.missing]
        raise NotApproved(
            f"run {run.run_id} is not approved: {' and '.join(said)} must agree",
            hint=how_to_approve(run.run_id, found.missing),
            run=run.run_id,
            missing=", ".join(found.missing),
        )
    return found


def require_no_refusal(reader: RunReader, run: Run) -> None:
    """Raises NotApproved for a run that a person rejected under review: another verdict would only ask the next one."""
    said = next((each.data for each in reversed(reader.events(run.run_id)) if each.name == "state.rejected"), {})
    if run.state is RunState.REJECTED and said.get("by"):
        raise NotApproved(f"run {run.run_id} was {run.detail}", hint=f"backcast cancel {run.run_id}, then plan again")


def with_approvals(world: World, status: Status) -> Status:
    """The status with who has agreed; and with what to type next, where somebody has yet to."""
    run = status.run
    need = need_of_run(world, world.reader(), run)
    if need is None or not (need.roles or need.notify):
        return status
    if status.manifest.approval is None and run.state not in OPEN_STATES:
        # It was planned, and ended, before there was a policy.
        return status
    now = world.clock.now() if run.state in OPEN_STATES - {RunState.UNDOING, RunState.PUBLISHING} else None
    found = standing(world, world.reader(), run, now)
    changes: dict[str, object] = {"approvals": found}
    if found.missing and run.state in _WAITING and status.holder is None:
        changes["next_command"] = f"backcast approve {run.run_id} --as {found.missing[0]}"
        where = "planned" if run.state is RunState.PLANNED else f"{run.state}, but approvals {_lacking(found)}"
        changes["because"] = f"{where}; {' and '.join(found.missing)} must agree first"
    policy = world.policy()
    if run.state is RunState.REVIEW and policy is not None:
        role = (policy.review or tuple(policy.roles))[0]
        changes["next_command"] = f"backcast approve {run.run_id} --as {role} --comment WHY"
    return status.model_copy(update=changes)


def _lacking(found: Approvals) -> str:
    return "have expired" if found.expired else "no longer count" if found.lapsed else "are missing"


def how_to_approve(run_id: str, missing: tuple[str, ...]) -> str:
    """The commands, each for another person."""
    commands = [f"backcast approve {run_id} --as {role}" for role in missing]
    return commands[0] if len(commands) == 1 else f"each by another person: {', '.join(commands)}"


def require_confirmation(world: World, run: Run, *, yes: bool) -> None:
    """Raises InvalidRequest where the policy wants a person to say it twice."""
    if yes:
        return
    need = need_of_run(world, world.reader(), run)
    if need is not None and need.confirm:
        raise InvalidRequest(f"the policy wants run {run.run_id} to be confirmed", hint="add --yes")


def approved_by(found: Approvals) -> str:
    """For the run's history."""
    names = [f"{each.by} as {each.role}" for each in found.given]
    return f"approved by {', '.join(names)}" if names else "no approval needed"


def _tier(world: World, manifest: Manifest) -> str | None:
    try:
        return world.dataset(manifest.target.dataset).tier
    except (UnknownName, InvalidRequest):
        return None
