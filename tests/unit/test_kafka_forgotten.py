"""A time that the log has forgotten is looked up as the log's start: what may be missing before it is suspected."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from backcast.model.log import OffsetRange, PartitionState, TopicFacts
from backcast.sources.kafka.retention import forgotten

NOW = datetime(2026, 3, 1, tzinfo=UTC)
WEEK = int(timedelta(days=7).total_seconds() * 1000)


def lost(
    *,
    log_start: int = 100,
    start: int = 100,
    first_days_ago: float | None = 6,
    since_days_ago: float = 9,
    retention_ms: int | None = WEEK,
    retention_bytes: int | None = None,
    only_by_time: bool = True,
) -> bool:
    facts = TopicFacts(
        topic="orders",
        topic_id="id",
        partitions=(PartitionState(0, log_start, 500),),
        cleanup=frozenset({"delete"}),
        retention_ms=retention_ms,
        retention_bytes=retention_bytes,
        timestamp_type="CreateTime",
    )
    first = None if first_days_ago is None else NOW - timedelta(days=first_days_ago)
    since = NOW - timedelta(days=since_days_ago)
    found = forgotten(
        facts, (OffsetRange(partition=0, start=start, end=200),), {0: first}, since, NOW, only_by_time=only_by_time
    )
    assert found in ((), (OffsetRange(partition=0, start=0, end=log_start),))
    return bool(found)


def test_records_before_the_logs_start_may_have_belonged_to_the_window() -> None:
    assert lost()
    assert lost(first_days_ago=None), "nothing is left at all"
    assert lost(retention_ms=None), "somebody deleted records, or the log grew too big"
    assert lost(since_days_ago=5, first_days_ago=1, retention_bytes=10**9), "size removes records however young"
    assert lost(since_days_ago=5, first_days_ago=1, only_by_time=False), "so does who deletes them"


@pytest.mark.parametrize(
    ("why", "of"),
    [
        ("the log never lost a record", {"log_start": 0, "start": 0}),
        ("the lookup found a place behind the log's start", {"start": 150}),
        ("the first record that is left is older than the window", {"first_days_ago": 10}),
        ("time removes nothing that young, and the partition was idle", {"since_days_ago": 5, "first_days_ago": 1}),
        ("nothing is ever that old", {"retention_ms": 2**63 - 1}),
    ],
)
def test_nothing_is_suspected_where(why: str, of: dict[str, float]) -> None:
    assert not lost(**of), why  # type: ignore[arg-type]  # numbers, all of them
