"""How many neighbouring chunks share a Spark job and a commit."""

from __future__ import annotations

from math import ceil

from backcast.model.finding import Finding, warn

MAX_COMMITS = 60
"""Stage commits of one run, unless its pipeline says otherwise: each is a commit to the table's metadata, and a live
writer must never lose its own against too many of them."""

_BYTES_PER_JOB = 4 * 1024**3
_MEMORIES_PER_JOB = 2
"""Spark spills what does not fit; a job of many times its memory spends its time on that."""
_MOST = 1000
"""As many as a pipeline may ask for. Files of that many partitions are written one after the other, not at once."""


def chunks_per_job(asked: int | None, chunks: int, input_bytes: int, memory: int, *, exact: bool) -> int:
    """What was asked for, or as many as make a job of a few gigabytes of input: big enough to be worth starting, small
    enough for Spark's memory and to be worth repeating. A group that fails is repeated in halves, whatever its size.
    """
    if asked is not None:
        return asked
    each = max(1, input_bytes // max(1, chunks))
    by_size = max(1, min(_MOST, min(_BYTES_PER_JOB, _MEMORIES_PER_JOB * memory) // each))
    # Rows of files that a scope cuts are deleted in one commit and added in another.
    groups = MAX_COMMITS // 2 if exact else MAX_COMMITS
    return max(by_size, ceil(chunks / groups))


def commit_findings(chunks: int, group: int, *, exact: bool) -> list[Finding]:
    """More commits to the metadata of a live table than a run should need, where chunks cannot share them."""
    commits = ceil(chunks / group) * (2 if exact else 1)
    if commits <= MAX_COMMITS:
        return []
    at_once = MAX_COMMITS // 2 * group if exact else MAX_COMMITS * group
    return [
        warn(
            "stage.many-commits",
            f"the run makes {commits} commits to the table's metadata, {MAX_COMMITS} are usual: row-exact chunks of a"
            " dataset with a `partition` column of its own share none",
            f"set a coarser `grain` on the dataset, or restate at most {at_once} chunks at once",
        )
    ]
