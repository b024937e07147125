"""Names of what a run leaves in a table, derived from the run so that nobody has to remember them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from backcast.errors import StateConflict
from backcast.model.amendment import amendments
from backcast.model.run import Event
from backcast.model.table import Stage

REF_PREFIX = "backcast_"
READY = "stage.ready"
"""The event after which workers may write to the stage whose branch it names."""


def _ref(run_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", run_id)


def stage_of(run_id: str, base: str | None, amendment: int = 0) -> Stage:
    """The stage that the run began with, or that of one of its amendments."""
    name = f"{_ref(run_id)}_{amendment}" if amendment else _ref(run_id)
    return Stage(run_id=run_id, branch=f"{REF_PREFIX}stage_{name}", base_tag=f"{REF_PREFIX}base_{name}", base=base)


def stages_of(run_id: str, events: Iterable[Event]) -> tuple[Stage, ...]:
    """Every stage that the run may have left in its table, oldest first, without their bases."""
    return tuple(stage_of(run_id, None, number) for number in range(len(amendments(events)) + 1))


def rewrite_stage_of(run_id: str, generation: int, head: str | None) -> Stage:
    """The branch on which an undo by rewriting is prepared."""
    name = f"{_ref(run_id)}_{generation}"
    return Stage(
        run_id=run_id, branch=f"{REF_PREFIX}rewrite_{name}", base_tag=f"{REF_PREFIX}rewrite_base_{name}", base=head
    )


def publish_fence(run_id: str, generation: int) -> str:
    return f"{REF_PREFIX}pub_{_ref(run_id)}_{generation}"


def undo_fence(run_id: str, generation: int) -> str:
    return f"{REF_PREFIX}undo_{_ref(run_id)}_{generation}"


def head_tag(run_id: str, generation: int) -> str:
    """Keeps the version right before a publish when its files are not those of the base."""
    return f"{REF_PREFIX}head_{_ref(run_id)}_{generation}"


def recorded_base(events: Iterable[Event]) -> str | None:
    """The base that the run recorded when it started or was amended last. Raises StateConflict when it never did."""
    found = [event.data["base"] for event in events if event.name == "state.running" and "base" in event.data]
    if not found:
        raise StateConflict("the run has not started", hint="backcast run RUN")
    return None if found[-1] is None else str(found[-1])


def recorded_stage(run_id: str, events: Iterable[Event]) -> Stage:
    """The stage that the run works on now. Raises StateConflict when it never started."""
    known = list(events)
    return stage_of(run_id, recorded_base(known), len(amendments(known)))


def is_ready(stage: Stage, events: Iterable[Event]) -> bool:
    """Whether the run's driver has opened the stage, with all on it that it begins with."""
    return any(event.name == READY and event.data["branch"] == stage.branch for event in events)


def recorded_staged(events: Iterable[Event]) -> str:
    """The staged version that the run recorded last, on the stage it works on now.

    Raises StateConflict when there is none.
    """
    found = ""
    for event in events:
        if event.name == "state.staged" and event.data.get("staged"):
            found = str(event.data["staged"])
        elif event.name == "state.running" and "amendment" in event.data:
            found = ""
    if not found:
        raise StateConflict("the run has no complete stage", hint="backcast run RUN")
    return found
