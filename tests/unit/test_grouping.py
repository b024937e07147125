"""Chunks share jobs by size, and a run never commits more than a table beside a live writer can bear."""

from __future__ import annotations

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from backcast.plan.grouping import MAX_COMMITS, chunks_per_job

GIB = 1024**3


def test_small_chunks_share_jobs_and_big_ones_are_alone() -> None:
    assert chunks_per_job(None, 30, 30 * 1024) == 1000
    assert chunks_per_job(None, 30, 30 * GIB) == 4
    assert chunks_per_job(None, 30, 30 * 40 * GIB) == 1


def test_what_the_pipeline_asks_for_counts() -> None:
    assert chunks_per_job(3, 10_000, 1) == 3


@given(chunks=st.integers(1, 100_000), size=st.integers(0, 10**15))
def test_commits_are_bounded_and_no_job_is_empty(chunks: int, size: int) -> None:
    group = chunks_per_job(None, chunks, size)
    assert group >= 1
    assert ceil(chunks / group) <= MAX_COMMITS
