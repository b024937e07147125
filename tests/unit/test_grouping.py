"""Chunks share jobs by size, and a run never commits more than a table beside a live writer can bear."""

from __future__ import annotations

from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from backcast.model.finding import Severity
from backcast.plan.grouping import MAX_COMMITS, chunks_per_job, commit_findings

GIB = 1024**3


def grouped(chunks: int, size: int, memory: int = 8 * GIB) -> int:
    return chunks_per_job(None, chunks, size, memory, exact=False)


def test_small_chunks_share_jobs_and_big_ones_are_alone() -> None:
    assert grouped(30, 30 * 1024) == 1000
    assert grouped(30, 30 * GIB) == 4
    assert grouped(30, 30 * 40 * GIB) == 1


def test_a_job_suits_the_memory_that_spark_has() -> None:
    assert grouped(30, 30 * GIB, memory=GIB) == 2
    assert grouped(30, 30 * GIB, memory=100 * GIB) == 4


def test_what_the_pipeline_asks_for_counts() -> None:
    assert chunks_per_job(3, 10_000, 1, GIB, exact=False) == 3


@given(chunks=st.integers(1, 100_000), size=st.integers(0, 10**15), memory=st.integers(1, 10**13), exact=st.booleans())
def test_commits_are_bounded_and_no_job_is_empty(chunks: int, size: int, memory: int, exact: bool) -> None:
    group = chunks_per_job(None, chunks, size, memory, exact=exact)
    assert group >= 1
    assert ceil(chunks / group) * (2 if exact else 1) <= MAX_COMMITS


def test_more_commits_than_usual_are_told_with_what_to_do_instead() -> None:
    """A year of row-exact days, of which each is two commits."""
    (found,) = commit_findings(365, 1, exact=True)
    assert (found.code, found.severity) == ("stage.many-commits", Severity.WARN)
    assert "730 commits" in found.reason
    assert "at most 30 chunks" in found.remedy
    assert not commit_findings(30, 1, exact=True)
    assert not commit_findings(60, 1, exact=False)
    assert not commit_findings(365, 13, exact=True)
