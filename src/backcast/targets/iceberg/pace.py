"""How fast commits to a stage may follow each other on a table that somebody else commits to.

A stage shares the table's metadata, so each of its commits makes a live writer's attempt under way fail. With Iceberg's
defaults a writer gives up after five attempts, which take it a few seconds: while fewer of ours than that can land in
such a time, it cannot fail because of them. Without a pause one process that commits back to back fails it in seconds.
"""

from __future__ import annotations

import time
from typing import Any

from backcast.model.table import Stage
from backcast.spark.iceberg.handle import head_of, parent_of, ref_of

BURST = 3
SPAN_SECONDS = 20.0
"""No more than a burst within such a span, beside a live writer: nine a minute."""


def seconds_to_wait(table: Any, stage: Stage) -> float:
    """How long the next commit to the stage should wait; not at all while the live table is at the stage's base."""
    version = ref_of(table, stage.branch)
    if head_of(table) == stage.base or version is None:
        return 0.0
    for _ in range(BURST - 1):
        version = None if version == stage.base else parent_of(table.snapshot(int(version)))
        if version is None or version == stage.base:
            return 0.0
    age = time.time() - int(table.snapshot(int(version)).timestampMillis()) / 1000
    return min(SPAN_SECONDS, max(0.0, SPAN_SECONDS - age))
