"""Offsets are cut into chunks so that each is owned once, whatever chunks of time read beside their own."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from backcast.model.log import OffsetRange, Ranges, cut, hull, owned_slices, span
from backcast.model.time import Interval

FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def offsets(ranges: Ranges) -> list[tuple[int, int]]:
    return [(each.partition, offset) for each in ranges for offset in range(each.start, each.end)]


def of(partition: int, start: int, end: int) -> OffsetRange:
    return OffsetRange(partition=partition, start=start, end=end)


@st.composite
def days(draw: st.DrawFn) -> dict[str, tuple[Interval, Ranges]]:
    """Days of several partitions whose starts never run backwards, with and without offsets in common."""
    many, partitions = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    found: dict[str, tuple[Interval, Ranges]] = {}
    starts, ends = [0] * partitions, [0] * partitions
    for day in range(many):
        for number in range(partitions):
            starts[number] += draw(st.integers(0, 5))
            ends[number] = starts[number] + draw(st.integers(0, 9))
        start = FIRST + timedelta(days=day)
        ranges = tuple(of(number, starts[number], ends[number]) for number in range(partitions))
        found[str(day)] = (Interval(start=start, end=start + timedelta(days=1)), ranges)
    return found


@given(days())
def test_every_offset_that_a_chunk_reads_is_owned_by_one_of_those_that_read_it(
    given_days: dict[str, tuple[Interval, Ranges]],
) -> None:
    slices = owned_slices(given_days)
    owned = Counter(each for one in slices.values() for each in offsets(one.owned))
    read = {each for _, ranges in given_days.values() for each in offsets(ranges)}
    assert read <= set(owned)
    assert set(owned.values()) <= {1}
    for one in slices.values():
        assert set(offsets(one.owned)) <= set(offsets(one.ranges))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=4), st.integers(1, 7))
def test_pieces_hold_every_offset_once_and_about_as_many_each(sizes: list[tuple[int, int]], pieces: int) -> None:
    ranges = tuple(of(number, start, start + size) for number, (start, size) in enumerate(sizes))
    found = cut(ranges, pieces)
    assert Counter(each for piece in found for each in offsets(piece)) == Counter(offsets(ranges))
    assert max(map(span, found)) - min(map(span, found)) <= len(ranges)


def test_a_hull_leaves_empty_ranges_out() -> None:
    assert hull([(of(0, 5, 9), of(1, 3, 3)), (of(0, 2, 4),)]) == (of(0, 2, 9),)


def test_offsets_never_run_backwards() -> None:
    with pytest.raises(ValidationError, match="not in order"):
        of(0, 3, 2)
