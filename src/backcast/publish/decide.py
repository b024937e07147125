"""What to commit, given how the live table moved since the base. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from backcast.errors import ScopeChanged
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
