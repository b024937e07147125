"""How fast commits to stages may follow each other in the metadata of one table.

Stages share the metadata of their table, so each commit to one of them, of whatever run and process, makes a live
writer's attempt under way fail. With Iceberg's defaults a writer gives up after five attempts, which take it a few
seconds: while fewer of ours than that can land in such a time, it cannot fail because of them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from backcast.model.table import Stage
from backcast.spark.iceberg.handle import head_of, parent_of
from backcast.targets.iceberg.commits import RUN

BURST = 3
SPAN_SECONDS = 20.0
"""No more than a burst within such a span, beside a live writer: nine a minute."""
QUIET_SECONDS = 5.0
"""The span where no writer is known: the first commit of one may come at any time, and takes its five attempts."""

_RHYTHM_SECONDS = 3600.0
"""A writer whose commits lie further apart is no stream."""
_LOOK = 4
"""So many commits of others tell whether one is to be expected."""


def seconds_to_wait(table: Any, stage: Stage) -> float:
    """How long the next commit to the stage should wait, for the sake of whoever else commits to the table."""
    moved = head_of(table) != stage.base
    return pause(_of_runs(table), [] if moved else _of_others(table), time.time(), moved=moved)


def pause(runs: Sequence[float], others: Sequence[float], now: float, *, moved: bool) -> float:
    """Pure, in seconds. Times of commits by runs, and of those by others to the live table, newest first.

    `moved` says that somebody committed since the stage was opened.
    """
    span = SPAN_SECONDS if moved or _expected(others, now) else QUIET_SECONDS
    newest = sorted(runs, reverse=True)[:BURST]
    if len(newest) < BURST:
        return 0.0
    return min(span, max(0.0, span - (now - newest[-1])))


def _expected(others: Sequence[float], now: float) -> bool:
    """Whether they came in a rhythm that makes the next one due: a stream with a slow trigger, for example."""
    gaps = (min(later - earlier, _RHYTHM_SECONDS + 1) for later, earlier in pairwise(others))
    return any(gap <= _RHYTHM_SECONDS and now - others[0] <= 2 * gap for gap in gaps)


def _of_runs(table: Any) -> list[float]:
    """Of all branches: another run's stage is in the same metadata. Snapshots are listed as they were added."""
    found: list[float] = []
    snapshots, long_ago = table.snapshots(), time.time() - SPAN_SECONDS
    for snapshot in reversed(snapshots):
        at = _time(snapshot)
        if at < long_ago or len(found) == BURST:
            break
        if _is_of_run(snapshot):
            found.append(at)
    return found


def _of_others(table: Any) -> list[float]:
    found: list[float] = []
    version = head_of(table)
    for _ in range(_LOOK):
        snapshot = None if version is None else table.snapshot(int(version))
        if snapshot is None:
            break
        if not _is_of_run(snapshot):
            found.append(_time(snapshot))
        version = parent_of(snapshot)
    return found


def _time(snapshot: Any) -> float:
    return int(snapshot.timestampMillis()) / 1000


def _is_of_run(snapshot: Any) -> bool:
    return bool(snapshot.summary().containsKey(RUN))
