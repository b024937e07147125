"""How many neighbouring chunks share a Spark job and a commit."""

from __future__ import annotations

from math import ceil

MAX_COMMITS = 60
"""Stage commits of one run, unless its pipeline says otherwise: each is a commit to the table's metadata, and a live
writer must never lose its own against too many of them."""

_BYTES_PER_JOB = 4 * 1024**3
_MOST = 1000
"""As many as a pipeline may ask for. Files of that many partitions are written one after the other, not at once."""


def chunks_per_job(asked: int | None, chunks: int, input_bytes: int) -> int:
    """What was asked for, or as many as make a job of a few gigabytes of input: big enough to be worth starting, small
    enough to be worth repeating. A group that fails is repeated in halves, whatever its size.
    """
    if asked is not None:
        return asked
    each = max(1, input_bytes // max(1, chunks))
    by_size = max(1, min(_MOST, _BYTES_PER_JOB // each))
    return max(by_size, ceil(chunks / MAX_COMMITS))
