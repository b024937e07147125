"""Whether the log will still have what a run wants: said per partition, with the offsets that are missing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backcast.model.log import OffsetRange, PartitionState, TopicFacts
from backcast.model.manifest import Survival
from backcast.sources.kafka.retention import PartitionSurvival, partition_survival, worst

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
RUN = timedelta(hours=1)
KEPT_A_WEEK = 7 * 86_400_000


def facts(
    cleanup: str = "delete", retention_ms: int | None = KEPT_A_WEEK, retention_bytes: int | None = None
) -> TopicFacts:
    policies = frozenset(filter(None, cleanup.split(",")))
    return TopicFacts("orders", "id", (PartitionState(0, 100, 200),), policies, retention_ms, retention_bytes, "")


def judged(start: int, end: int, age: timedelta | None = DAY, known: TopicFacts | None = None) -> PartitionSurvival:
    first = None if age is None else NOW - age
    wanted = OffsetRange(partition=0, start=start, end=end)
    return partition_survival(known or facts(), wanted, first, NOW, RUN)


def test_what_lies_below_the_log_start_is_gone_and_named() -> None:
    gone = judged(40, 90)
    assert (gone.survival, gone.missing) == (Survival.GONE, OffsetRange(partition=0, start=40, end=90))
    assert judged(40, 100).survival is Survival.GONE
    partial = judged(40, 150)
    assert (partial.survival, partial.missing) == (Survival.PARTIAL, OffsetRange(partition=0, start=40, end=100))
    assert partial.survives_until == NOW + 6 * DAY
    assert judged(100, 150).missing is None


def test_a_partition_that_is_not_there_is_gone_and_an_empty_range_asks_for_nothing() -> None:
    wanted = OffsetRange(partition=7, start=0, end=5)
    assert partition_survival(facts(), wanted, NOW, NOW, RUN).survival is Survival.GONE
    assert judged(50, 50).survival is Survival.OK


def test_the_run_must_end_before_time_may_take_the_first_record() -> None:
    assert judged(100, 150, 6 * DAY).survival is Survival.OK
    assert judged(100, 150, 7 * DAY - RUN).survival is Survival.AT_RISK
    assert judged(100, 150, 7 * DAY - RUN - timedelta(seconds=1)).survival is Survival.OK
    late = judged(100, 150, 9 * DAY)
    assert (late.survival, late.survives_until) == (Survival.AT_RISK, NOW - 2 * DAY)


@pytest.mark.parametrize(
    ("known", "age", "expected"),
    [
        (facts("compact"), 99 * DAY, Survival.UNBOUNDED),
        (facts("delete", None), 99 * DAY, Survival.UNBOUNDED),
        (facts("compact,delete"), 99 * DAY, Survival.AT_RISK),
        (facts("delete", None, 1_000), DAY, Survival.UNKNOWN),
        (facts("delete", KEPT_A_WEEK, 1_000), DAY, Survival.UNKNOWN),
        (facts("delete", KEPT_A_WEEK, 1_000), 9 * DAY, Survival.AT_RISK),
        (facts("delete"), None, Survival.UNKNOWN),
        (facts(""), DAY, Survival.UNKNOWN),
        (facts("delete", 2**63 - 1), DAY, Survival.OK),
    ],
)
def test_what_removes_records_decides(known: TopicFacts, age: timedelta | None, expected: Survival) -> None:
    assert judged(100, 150, age, known).survival is expected


def test_one_word_for_all_partitions_is_the_worst() -> None:
    assert worst([Survival.OK, Survival.PARTIAL, Survival.AT_RISK]) is Survival.PARTIAL
    assert worst([Survival.UNBOUNDED, Survival.UNKNOWN]) is Survival.UNKNOWN
    assert worst([]) is Survival.OK
    assert {worst([each]) for each in Survival} == set(Survival)


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 20))
def test_missing_and_left_are_the_wanted_offsets_without_overlap(one: int, other: int, age: int) -> None:
    start, end = sorted((one, other))
    found = judged(start, end, timedelta(days=age))
    missing = range(0) if found.missing is None else range(found.missing.start, found.missing.end)
    assert list(missing) == [offset for offset in range(start, end) if offset < 100]
    complete = {Survival.OK, Survival.AT_RISK}
    assert (found.survival in complete) == (not missing)
    assert (found.survival is Survival.GONE) == (len(missing) == end - start > 0)
