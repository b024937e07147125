"""What the rows of a run say in the store must be what its history says: rows are easily written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.errors import NotVerified
from backcast.model.document import sha256
from backcast.model.evidence import VERDICT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backcast.model.run import Event, Run
    from backcast.model.verdict import Verdict
    from backcast.ports import RunReader


def state_told(events: Sequence[Event]) -> str:
    """The state that the history ended in; empty when it tells none."""
    return next((str(each.data["to"]) for each in reversed(events) if each.name.startswith("state.")), "")


def require_history(reader: RunReader, run: Run) -> None:
    """Raises NotVerified when the chain is broken, or when state or verdict are not those that it tells."""
    events = reader.events(run.run_id)
    problem = _broken(reader.verify_events(run.run_id)) or _contradiction(run, events, reader.verdict(run.run_id))
    if problem is not None:
        raise NotVerified(
            f"run {run.run_id} {problem}: the store was changed by another hand",
            hint="plan again, and ask who can write to the store",
            run=run.run_id,
        )


def _broken(number: int | None) -> str | None:
    return None if number is None else f"has another event {number} than it was given"


def _contradiction(run: Run, events: Sequence[Event], verdict: Verdict | None) -> str | None:
    told = state_told(events)
    if told != run.state.value:
        return f"is {run.state.value} in the store and {told or 'nothing'} in its history"
    # Verdicts of the first release have no event.
    judged = next((str(each.data["document"]) for each in reversed(events) if each.name == VERDICT), None)
    if judged is not None and (verdict is None or sha256(verdict.canonical()) != judged):
        return "has another verdict than its history tells"
    return None
