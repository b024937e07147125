"""What a run with live policy `restage` may change about its own plan, and where that is written down."""

from __future__ import annotations

from collections.abc import Iterable

from backcast.model.document import Document
from backcast.model.manifest import InputPin, Manifest
from backcast.model.run import Event


class Amendment(Document):
    """A newer base, and newer inputs for the chunks that live rows reached. The other chunks are carried over.

    It is part of the event that sets the run back to running: both are on record, or neither is.
    """

    amendment: int
    """Counts from 1. Also numbers the stage."""
    base: str
    """The head on which the live rows were found."""
    touched: tuple[str, ...]
    """Chunks to compute again."""
    carried_from: str
    """The staged version that holds the other chunks."""
    arrived: tuple[str, ...]
    """Files that arrived in scope between the base before and this one."""
    arrived_rows: int
    inputs: tuple[InputPin, ...]


def amendments(events: Iterable[Event]) -> tuple[Amendment, ...]:
    """All amendments of the run, oldest first."""
    known = Amendment.model_fields.keys()
    return tuple(
        Amendment.model_validate({key: value for key, value in event.data.items() if key in known})
        for event in events
        if event.name == "state.running" and "amendment" in event.data
    )


def current_inputs(manifest: Manifest, amended: tuple[Amendment, ...]) -> tuple[InputPin, ...]:
    """What chunks that are still to be computed read."""
    return amended[-1].inputs if amended else manifest.inputs
