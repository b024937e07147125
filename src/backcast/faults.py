"""Named points at which a test may end the process.

Production code calls `point(name)` before and after each intent, side effect and record. It does nothing unless a hook
was armed by `backcast.testing.faults`. Names are listed here so that the crash suite can prove it tried every one.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS: tuple[str, ...] = (
    "plan.before-record",
    "plan.after-record",
    "run.before-approve",
    "run.after-approve",
    "run.after-start",
    "stage.before-open-intent",
    "stage.after-open-intent",
    "stage.after-open",
    "stage.after-open-record",
    "chunk.before-claim",
    "chunk.after-claim",
    "chunk.after-write-intent",
    "chunk.before-commit",
    "chunk.after-commit",
    "chunk.after-record",
    "run.before-reconcile",
    "run.before-staged",
    "run.after-staged",
    "validate.before-verdict",
    "validate.after-verdict",
    "validate.after-state",
    "publish.before-intent",
    "publish.after-intent",
    "publish.before-commit",
    "publish.after-commit",
    "publish.after-record",
    "publish.before-state",
    "publish.after-state",
    "restage.before-amend",
    "restage.after-amend",
    "restage.after-carry-intent",
    "restage.before-carry",
    "restage.after-carry",
    "restage.after-carry-record",
    "restage.after-reset",
    "undo.before-intent",
    "undo.after-intent",
    "undo.before-commit",
    "undo.after-commit",
    "undo.after-record",
    "undo.after-state",
    "cancel.after-intent",
    "cancel.before-forget",
    "cancel.after-forget",
    "gc.after-intent",
    "gc.before-forget",
    "gc.after-forget",
    "gc.after-record",
    "replay.after-order",
    "replay.after-fork",
    "replay.before-flush",
    "replay.after-flush",
)

STREAM_POINTS: tuple[str, ...] = (
    "stream.before-intent",
    "stream.after-intent",
    "stream.before-commit",
    "stream.after-commit",
    "stream.after-record",
)
"""Of a live stream, which is no run: its own tests try them."""

FULL_REPLAY_POINTS: tuple[str, ...] = (
    "catch-up.after-batches",
    "catch-up.after-cut",
    "full-replay.after-slice",
    "full-replay.before-exchange",
    "full-replay.after-exchange",
    "full-replay.after-swap",
    "full-replay.after-giving-up",
)
"""Of a full replay, which is a stream's affair too."""

BACKFILL_POINTS: tuple[str, ...] = (
    "backfill.before-stopped",
    "backfill.before-backed-up",
    "backfill.before-planned",
    "backfill.before-published",
    "backfill.before-verified",
    "backfill.before-resumed",
    "backfill.before-done",
    "backfill.after-record",
)
"""Of `stream backfill`: each step is done and not on record; or any is on record."""

ALL_POINTS = POINTS + STREAM_POINTS + FULL_REPLAY_POINTS + BACKFILL_POINTS

_hook: Callable[[str], None] | None = None


def arm(hook: Callable[[str], None] | None) -> None:
    """Install (or with None remove) the hook. Only the test kit calls this."""
    global _hook  # noqa: PLW0603  one hook for the process is the point
    _hook = hook


def point(name: str) -> None:
    """Do nothing, or whatever the armed hook does. Must never be used for control flow."""
    if _hook is not None:
        _hook(name)
