"""A full replay of a stream as one command of several steps: what it is about, and how far it is. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import Field

from backcast.errors import Refused, StateConflict
from backcast.model.document import Document
from backcast.model.live import LiveStep

BEGUN, STOPPED, CAUGHT_UP, PLANNED, PUBLISHED, SWAPPED, RESUMED, DONE, GIVEN_UP = (
    f"full-replay.{name}"
    for name in ("begun", "stopped", "caught-up", "planned", "published", "swapped", "resumed", "done", "given-up")
)


class FullReplay(Document):
    """One of them, as its steps tell."""

    stream: str
    pipeline: str
    start: str | None
    """From where on the table is replaced; None: all of it."""
    query_id: str
    """Of the query that computes the rows, and goes on as the stream."""
    resume: bool
    """The stream was running and is started again at the end."""
    steps: tuple[str, ...] = ()
    """Names of those that are done, in order."""
    batch: int | None = None
    """The last of the query's batches whose rows are published."""
    ends: dict[int, int] = Field(default_factory=dict)
    """Where both queries stood when they changed places: the next offset of each partition."""
    first_day: str | None = None
    end_day: str | None = None
    run_id: str | None = None
    kept: str | None = None
    """Where the checkpoint lies that the stream had before."""

    def has(self, step: str) -> bool:
        return step in self.steps


class CaughtUp(Document):
    """How far the query is."""

    batch: int | None
    ends: dict[int, int]
    behind: int
    """Records that the stream had read by then, and it had not."""
    first_day: str | None = None
    end_day: str | None = None


def unfinished(steps: Iterable[LiveStep]) -> FullReplay | None:
    """The newest full replay of a stream that did not come to its end."""
    found: FullReplay | None = None
    for each in steps:
        if each.name == BEGUN:
            found = FullReplay.model_validate(each.data)
        elif each.name in (DONE, GIVEN_UP):
            found = None
        elif found is not None and each.name.startswith("full-replay."):
            told: dict[str, Any] = {name: each.data[name] for name in _TOLD if name in each.data}
            steps_done = (*found.steps, each.name)
            found = FullReplay.model_validate({**found.as_json(), **told, "steps": steps_done})
    return found


_TOLD = ("batch", "ends", "first_day", "end_day", "run_id", "kept")


def refuse_another(there: FullReplay, start: str | None) -> None:
    if there.start != start:
        since = f" --from {there.start}" if there.start else ""
        raise StateConflict(
            f"a full replay of stream {there.stream} is not over",
            hint=f"backcast stream replay {there.stream}{since} goes on with it",
        )


def refuse_between(steps: Iterable[LiveStep]) -> None:
    """Raises Refused for a start between the stop and the exchange of checkpoints: rows would be there twice."""
    there = unfinished(steps)
    if there is None or not there.has(STOPPED) or there.has(SWAPPED):
        return
    since = f" --from {there.start}" if there.start else ""
    again = f"backcast stream replay {there.stream}{since}"
    raise Refused(
        f"a full replay of stream {there.stream} has stopped it, and is not over: its own query goes on as the stream",
        hint=f"{again} goes on, and with --give-up it leaves all as it was",
    )
