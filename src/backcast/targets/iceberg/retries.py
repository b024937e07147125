"""When to try a commit again by itself: only when it certainly did not land."""

from __future__ import annotations

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from backcast.spark.gateway import find_cause, is_jvm_error

REF_ATTEMPTS = 20
"""Changes of refs are small, and Iceberg never retries them itself."""

COMMIT_ATTEMPTS = 20
"""Commits of files that are written already."""

WRITE_ATTEMPTS = 4
"""Each repeats a whole job, after Iceberg's own retries were used up."""


def retrying(attempts: int) -> Retrying:
    """Try again after a commit that lost the race against somebody else's."""
    return Retrying(
        retry=retry_if_exception(_lost_race),
        stop=stop_after_attempt(attempts),
        wait=wait_random_exponential(multiplier=0.05, max=2),
        reraise=True,
    )


def _lost_race(error: BaseException) -> bool:
    if not is_jvm_error(error):
        return False
    if find_cause(error, frozenset({"CommitFailedException"})):
        return True
    # Copy-on-write on Spark 4.0 gives up, before any commit, when the table moved between planning and reading.
    moved = find_cause(error, frozenset({"IllegalStateException"}))
    return moved is not None and "concurrently modified" in moved.message
