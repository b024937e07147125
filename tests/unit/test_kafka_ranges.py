"""From moments to literal offsets: nothing that the log has and the window needs is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backcast.model.log import OffsetRange, PartitionState, TopicFacts
from backcast.model.time import Interval
from backcast.sources.kafka.ranges import event_ranges, ranges_for_times, whole

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def facts(*bounds: tuple[int, int]) -> TopicFacts:
    states = tuple(PartitionState(number, start, end) for number, (start, end) in enumerate(bounds))
    return TopicFacts("orders", "id", states, frozenset({"delete"}), None, None, "CreateTime")


def at(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=seconds)


Lookup = Callable[[datetime], dict[int, int | None]]


def lookup_in(logs: Mapping[int, tuple[int, list[int]]]) -> tuple[Lookup, Lookup]:
    """What a broker answers: the first offset whose time, in seconds, is not before the instant."""

    def lookup(instant: datetime) -> dict[int, int | None]:
        wanted = (instant - EPOCH).total_seconds()
        return {
            number: next((first + place for place, time in enumerate(times) if time >= wanted), None)
            for number, (first, times) in logs.items()
        }

    return lookup, lookup


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (20, 30, (20, 30)),
        (20, None, (20, 50)),
        (None, None, (50, 50)),
        (5, 30, (10, 30)),
        (5, 7, (10, 10)),
        (20, 90, (20, 50)),
        (60, 90, (50, 50)),
        (30, 20, (20, 30)),
        (None, 20, (20, 50)),
    ],
)
def test_a_window_of_record_times_is_cut_to_the_log(
    start: int | None, end: int | None, expected: tuple[int, int]
) -> None:
    (found,) = ranges_for_times(facts((10, 50)), {0: start}, {0: end})
    assert (found.start, found.end) == expected


def test_a_partition_that_nobody_looked_up_is_taken_whole() -> None:
    found = ranges_for_times(facts((0, 5), (3, 9)), {0: 1}, {0: 2})
    assert found == (OffsetRange(partition=0, start=1, end=2), OffsetRange(partition=1, start=3, end=9))
    assert whole(facts((0, 5), (3, 9))) == tuple(
        OffsetRange(partition=number, start=start, end=end) for number, start, end in ((0, 0, 5), (1, 3, 9))
    )


optional = st.none() | st.integers(0, 120)


@given(st.integers(0, 50), st.integers(0, 50), optional, optional)
def test_every_range_lies_in_the_log_and_holds_all_between_the_two_lookups(
    log_start: int, length: int, start: int | None, end: int | None
) -> None:
    log_end = log_start + length
    (found,) = ranges_for_times(facts((log_start, log_end)), {0: start}, {0: end})
    assert log_start <= found.start <= found.end <= log_end
    first, last = (log_end if each is None else each for each in (start, end))
    between = range(max(log_start, min(first, last)), min(log_end, max(first, last)))
    assert all(found.start <= offset < found.end for offset in between)


times = st.lists(st.integers(0, 60), max_size=30)


@given(st.lists(times, min_size=1, max_size=3), st.integers(0, 60), st.integers(1, 30), st.integers(0, 20))
def test_a_scan_to_the_end_holds_every_record_of_the_window_however_disordered(
    logs: list[list[int]], start: int, length: int, early: int
) -> None:
    """Event times here are record times plus at most `early` seconds: a record is never written earlier than that."""
    by_partition = {number: (number * 100, each) for number, each in enumerate(logs)}
    known = facts(*((first, first + len(each)) for first, each in by_partition.values()))
    window = Interval(start=at(start), end=at(start + length))
    slack = (timedelta(seconds=early), timedelta())
    found = event_ranges(known, lookup_in(by_partition), window, slack, to_end=True)
    for each, (first, record_times) in zip(found, by_partition.values(), strict=True):
        for place, written in enumerate(record_times):
            if any(start <= written + ahead < start + length for ahead in range(early + 1)):
                assert each.start <= first + place < each.end


@given(times, st.integers(0, 60), st.integers(1, 30), st.integers(0, 10))
def test_slack_that_covers_the_disorder_is_enough(order: list[int], start: int, length: int, disorder: int) -> None:
    """Record times that run backwards by no more than the slack are found without reading to the end."""
    newest, log = 0, []
    for step in order:
        newest = max(newest, step)
        log.append(max(step, newest - disorder))
    window = Interval(start=at(start), end=at(start + length))
    slack = (timedelta(), timedelta(seconds=disorder))
    (found,) = event_ranges(facts((0, len(log))), lookup_in({0: (0, log)}), window, slack)
    wanted = [place for place, time in enumerate(log) if start <= time < start + length]
    assert all(found.start <= place < found.end for place in wanted)


def test_the_measured_disorder_is_lost_without_slack_and_kept_with_it() -> None:
    log = {0: (0, [0, 9, 1, 2, 3, 12])}
    window = Interval(start=at(0), end=at(5))
    (narrow,) = event_ranges(facts((0, 6)), lookup_in(log), window, (timedelta(), timedelta()))
    assert (narrow.start, narrow.end) == (0, 1)
    (enough,) = event_ranges(facts((0, 6)), lookup_in(log), window, (timedelta(), timedelta(seconds=6)))
    assert (enough.start, enough.end) == (0, 5)


def test_slack_beyond_the_calendar_stops_at_its_ends() -> None:
    asked: list[datetime] = []

    def lookup(instant: datetime) -> dict[int, int | None]:
        asked.append(instant)
        return {0: None}

    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    window = Interval(start=first + timedelta(days=1), end=last - timedelta(days=1))
    event_ranges(facts((0, 6)), (lookup, lookup), window, (timedelta(days=3), timedelta(days=3)))
    assert asked == [first, last]
