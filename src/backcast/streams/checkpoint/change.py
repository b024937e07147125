"""What rewind, fork and restore have in common: what is asked before, and what is told after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from backcast.errors import InvalidRequest, Refused
from backcast.model.checkpoint import Change, Severity, SinkPrediction, SourcePosition
from backcast.streams.checkpoint.damage import damages_of
from backcast.streams.checkpoint.exchange import Exchange
from backcast.streams.checkpoint.folder import Checkpoint, Told
from backcast.streams.checkpoint.look import positions

Prove = Callable[[Checkpoint, int], tuple[str, ...]]
"""Has Spark load the state after a batch; what it loaded. Raises Refused."""
Skipped = Callable[[int | None], str]
"""Offsets that nobody reads, in words, by the newest batch of the query before that the table has."""


def nothing_skipped(_: int | None) -> str:
    return ""


class Predict(Protocol):
    """What the sink will do. Refuses what nobody would notice."""

    def __call__(
        self, query_id: str, next_batch: int, again: int, skipped: Skipped = nothing_skipped, /
    ) -> SinkPrediction | None:
        """By the id of the query, its first batch, and how many batches run once more."""


@dataclass(frozen=True, slots=True)
class Checks:
    """What is asked before anything takes the place of anything."""

    prove: Prove
    predict: Predict
    told: Told = None


def proven(candidate: Checkpoint, batch: int, checks: Checks) -> tuple[str, ...]:
    """By its files first, then by Spark."""
    wrong = [each for each in damages_of(candidate) if each.severity is not Severity.HARMLESS]
    if wrong:
        raise Refused(f"the checkpoint would be damaged: {wrong[0].file}: {wrong[0].what}", hint=wrong[0].remedy)
    return checks.prove(candidate, batch)


def run_again(checkpoint: Checkpoint, batch: int) -> int:
    """How many batches run once more when the stream goes on after that one."""
    return 0 if checkpoint.committed is None else max(0, checkpoint.committed - batch)


def already(action: str, checkpoint: Checkpoint, exchange: Exchange, *, finished: bool) -> Change:
    """For a command that finds its work done."""
    kept = exchange.kept()
    return Change(
        action=action,
        path=str(checkpoint.root),
        query_id=checkpoint.readable_id() or "",
        batch=checkpoint.committed,
        sources=positions_after(checkpoint, checkpoint.committed),
        kept=str(kept[-1]) if finished and kept else None,
        notes=("an interrupted exchange was finished",) if finished else ("it is so already",),
        changed=finished,
    )


def id_of(checkpoint: Checkpoint) -> str:
    found = checkpoint.readable_id()
    if found is None:
        hint = f"backcast checkpoint verify {checkpoint.root}"
        raise InvalidRequest(f"{checkpoint.root}: the id of the query cannot be read", hint=hint)
    return found


def positions_after(checkpoint: Checkpoint, batch: int | None) -> tuple[SourcePosition, ...]:
    return positions(checkpoint.readable_plan(batch))
