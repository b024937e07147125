"""The only place that says which state may follow which."""

from __future__ import annotations

from enum import StrEnum


class RunState(StrEnum):
    PLANNED = "planned"
    APPROVED = "approved"
    RUNNING = "running"
    FAILED = "failed"
    STAGED = "staged"
    REVIEW = "review"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    PUBLISHING = "publishing"
    PUBLISHED = "published"
    SUPERSEDED = "superseded"
    UNDOING = "undoing"
    UNDONE = "undone"
    CANCELLING = "cancelling"
    CANCELLED = "cancelled"


S = RunState

TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    S.PLANNED: frozenset({S.APPROVED, S.CANCELLING}),
    S.APPROVED: frozenset({S.RUNNING, S.CANCELLING}),
    S.RUNNING: frozenset({S.STAGED, S.FAILED, S.CANCELLING}),
    S.FAILED: frozenset({S.RUNNING, S.CANCELLING}),
    S.STAGED: frozenset({S.ACCEPTED, S.REVIEW, S.REJECTED, S.CANCELLING}),
    S.REVIEW: frozenset({S.STAGED, S.ACCEPTED, S.REJECTED, S.CANCELLING}),
    S.ACCEPTED: frozenset({S.STAGED, S.RUNNING, S.PUBLISHING, S.CANCELLING}),
    S.REJECTED: frozenset({S.STAGED, S.CANCELLING}),
    S.PUBLISHING: frozenset({S.PUBLISHED, S.ACCEPTED, S.UNDONE}),
    S.PUBLISHED: frozenset({S.UNDOING, S.SUPERSEDED}),
    S.SUPERSEDED: frozenset({S.PUBLISHED}),
    S.UNDOING: frozenset({S.UNDONE, S.PUBLISHED}),
    S.UNDONE: frozenset({S.PUBLISHING}),
    S.CANCELLING: frozenset({S.CANCELLED}),
    S.CANCELLED: frozenset(),
}
"""PUBLISHING goes back to where it came from when the commit did not land; UNDONE may be published again.

ACCEPTED becomes RUNNING only by an amendment, see `model/amendment.py`. REVIEW waits for a person: no blocking check
failed, and a gate says that somebody must look.
"""

VISIBLE_STATES: frozenset[RunState] = frozenset({RunState.PUBLISHED, RunState.SUPERSEDED})
"""What the run wrote is in the table, or was until others replaced it."""

OPEN_STATES: frozenset[RunState] = frozenset(
    {
        S.PLANNED,
        S.APPROVED,
        S.RUNNING,
        S.FAILED,
        S.STAGED,
        S.REVIEW,
        S.ACCEPTED,
        S.REJECTED,
        S.PUBLISHING,
        S.UNDOING,
        S.CANCELLING,
    }
)
"""Runs that may still change what readers see, or hold a stage that waits for a decision."""


def allowed(current: RunState, following: RunState) -> bool:
    return following in TRANSITIONS[current]


class ChunkState(StrEnum):
    PENDING = "pending"
    HELD = "held"
    """Waits until a person has looked at the canary."""
    RUNNING = "running"
    STAGED = "staged"
    FAILED = "failed"


class EffectState(StrEnum):
    """Outcome of one side effect. INTENDED means: written down, and not known to have happened."""

    INTENDED = "intended"
    LANDED = "landed"
    NOT_LANDED = "not-landed"


class Execution(StrEnum):
    """What transforms and sinks are told about why they run."""

    LIVE = "LIVE"
    BACKFILL = "BACKFILL"
    REPLAY = "REPLAY"
    DRY_RUN = "DRY_RUN"
    RECONCILIATION = "RECONCILIATION"
