"""What to commit, given how the live table moved since the base. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backcast.errors import NotValidated, ScopeChanged
from backcast.model.manifest import LivePolicy
from backcast.model.table import Movement, NetChange
from backcast.model.words import many


@dataclass(frozen=True, slots=True)
class Decision:
    """Which live files go. `live` are files of live rows in scope that stay beside the restated ones."""

    remove: frozenset[str]
    live: frozenset[str]
    compacted: bool
    """The removed files are not the base's but those a compaction made of them."""


class RestageNeeded(ScopeChanged):
    """Live rows arrived in scope, and the policy allows to stage again what they reached. Never leaves the flow."""

    def __init__(self, refused: ScopeChanged, movement: Movement) -> None:
        super().__init__(refused.message, hint=refused.hint, **refused.attributes)
        self.movement = movement


def decide(net: NetChange, movement: Movement, policy: LivePolicy, run_id: str, *, exact: bool) -> Decision:
    """Raises ScopeChanged when publishing would lose or double a row, or when the policy forbids it.

    RestageNeeded when that can be mended: files only arrived, and nothing that the run knew was changed.
    """
    planned = frozenset(file.path for file in net.removed)
    if not movement.moved:
        return Decision(remove=planned, live=frozenset(), compacted=False)
    gone = frozenset(file.path for file in movement.removed)
    arrived = frozenset(file.path for file in movement.added)
    if movement.only_compaction and not exact and planned <= gone | movement.files.paths:
        return Decision(remove=movement.files.paths, live=frozenset(), compacted=True)
    only_arrivals = not gone and not movement.files.has_deletes
    if policy is LivePolicy.KEEP and only_arrivals:
        return Decision(remove=planned, live=arrived, compacted=False)
    if policy is LivePolicy.RESTAGE and only_arrivals and not exact:
        raise RestageNeeded(refusal(movement, policy, run_id), movement)
    raise refusal(movement, policy, run_id)


def decide_append(net: NetChange, run_id: str) -> Decision:
    """Rows that are added meet no other: whatever moved in the table is of no interest.

    Raises NotValidated when the stage takes a file out, which no append does.
    """
    if net.removed:
        raise NotValidated(
            f"the stage of an append takes out {many(len(net.removed), 'file')} of the table",
            hint=f"backcast cancel {run_id}, then plan again",
        )
    return Decision(remove=frozenset(), live=frozenset(), compacted=False)


def decide_merge(net: NetChange, movement: Movement, policy: LivePolicy, run_id: str) -> Decision:
    """Publish beside what arrived, once its keys are compared: that is what `live` is for, under every policy.

    Raises when a file that the merge wrote anew was changed or compacted meanwhile. To stage a merge again is always
    possible: it compares versions with whatever is there then.
    """
    planned = frozenset(file.path for file in net.removed)
    if planned & frozenset(file.path for file in movement.removed):
        raise merge_refusal(movement, policy, run_id)
    arrived = frozenset() if movement.only_compaction else frozenset(file.path for file in movement.added)
    return Decision(remove=planned, live=arrived, compacted=False)


def merge_refusal(movement: Movement, policy: LivePolicy, run_id: str, keys: Sequence[str] = ()) -> ScopeChanged:
    """With those keys when live rows have them too."""
    refused = refusal(movement, LivePolicy.KEEP, run_id)
    if keys:
        words = f"live rows arrived with keys that the run merges, for example {', '.join(keys[:3])}"
        refused = ScopeChanged(words, hint=refused.hint, run=run_id)
    return RestageNeeded(refused, movement) if policy is LivePolicy.RESTAGE else refused


def refusal(movement: Movement, policy: LivePolicy, run_id: str) -> ScopeChanged:
    rows = sum(file.rows for file in movement.added)
    what = f"{many(len(movement.added), 'file')} ({many(rows, 'row')}) arrived" if movement.added else "no file arrived"
    if movement.removed:
        what += f" and {many(len(movement.removed), 'file')} left"
    commits = ", ".join(
        f"commit {each.version} ({each.operation} at {each.at:%H:%M:%S} UTC)" for each in movement.commits[:3]
    )
    hint = "plan again: the new plan reads the table as it is now"
    if policy is LivePolicy.FAIL and movement.added and not movement.removed:
        hint += "; or set `live: keep` on the pipeline to leave live rows beside the restated ones"
    return ScopeChanged(
        f"the scope changed since the base: {what}" + (f" in {commits}" if commits else ""),
        hint=f"backcast cancel {run_id}, then {hint}",
        run=run_id,
    )
