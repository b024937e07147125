"""The throttle of a run as it is in force: that of its plan, and what people made of it since."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from backcast.model.document import Document
from backcast.model.manifest import Manifest
from backcast.model.run import Event, Run
from backcast.model.states import RunState
from backcast.model.throttle import Throttle

CHANGED = "throttle.changed"
"""The event that tells of a change: who made it, and the limits that differ, `from` and `to`."""

MAY_BEGIN_JOBS: frozenset[RunState] = frozenset(
    {RunState.PLANNED, RunState.APPROVED, RunState.RUNNING, RunState.FAILED}
    # What live rows reach may be staged again.
    | {RunState.STAGED, RunState.REVIEW, RunState.ACCEPTED}
)


class ThrottleChange(Document):
    """What somebody changed while the run was under way."""

    number: int
    at: datetime
    by: str
    account: str
    before: dict[str, Any]
    """The limits that differ, as they were."""
    after: dict[str, Any]

    def told(self) -> str:
        """For people: `rows_per_second none to 500, hours none to 22:00-06:00 UTC`."""
        names = [name for name in Throttle.model_fields if name in self.after]
        names = [name for name in names if name != "streams" or len(names) == 1]
        return ", ".join(f"{name} {_word(self.before.get(name))} to {_word(self.after[name])}" for name in names)


class Throttled(Document):
    """What holds a run back now, and how it came to that."""

    run_id: str
    state: RunState
    planned: Throttle
    in_force: Throttle
    changes: tuple[ThrottleChange, ...]


def throttled(run: Run, manifest: Manifest, events: Iterable[Event]) -> Throttled:
    planned = manifest.settings.throttle or Throttle()
    changes = tuple(_change(event) for event in events if event.name == CHANGED)
    in_force = planned
    for each in changes:
        in_force = with_limits(in_force, each.after)
    return Throttled(run_id=run.run_id, state=run.state, planned=planned, in_force=in_force, changes=changes)


def with_limits(throttle: Throttle, limits: dict[str, Any]) -> Throttle:
    """With these limits in place of its own. Raises pydantic's ValidationError for what is no limit."""
    return Throttle.model_validate({**throttle.model_dump(), **limits})


def changed_by(event: Event, throttle: Throttle) -> Throttle:
    """The throttle after that event of the run."""
    return with_limits(throttle, event.data["to"]) if event.name == CHANGED else throttle


def difference(before: Throttle, after: Throttle) -> dict[str, dict[str, Any]]:
    """`from` and `to` of the limits that differ; empty when none does."""
    old, new = before.model_dump(mode="json"), after.model_dump(mode="json")
    names = [name for name in Throttle.model_fields if old.get(name) != new.get(name)]
    if not names:
        return {}
    return {"from": {name: old.get(name) for name in names}, "to": {name: new.get(name) for name in names}}


def _change(event: Event) -> ThrottleChange:
    return ThrottleChange(
        number=event.number,
        at=event.at,
        by=str(event.data.get("by", "")),
        account=event.account,
        before=event.data["from"],
        after=event.data["to"],
    )


def _word(value: Any) -> str:
    match value:
        case None:
            return "none"
        case int():
            return f"{value:,}"
        case list():
            return " and ".join(map(str, value)) or "none"
        case _:
            return str(value)
