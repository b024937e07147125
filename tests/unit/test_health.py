"""Gaps in time, found from counts alone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backcast.cli.render.fixes import plan_command
from backcast.errors import InvalidRequest
from backcast.model import time as t
from backcast.model.calendar import Calendar, Week
from backcast.model.fixing import offset_request, window_requests
from backcast.model.health import gaps_of, missing_hours, pieces_of, thin_of
from backcast.model.log import OffsetRange
from backcast.model.request import Request
from backcast.model.time import Grain, Interval


def walls(*days: int) -> dict[datetime, int]:
    return {datetime(2026, 3, day): 10 for day in days}  # noqa: DTZ001 - wall clock times


def test_neighbouring_pieces_without_rows_are_one_gap() -> None:
    counts = walls(1, 2, 5, 7)
    pieces = pieces_of(counts, None, Grain.DAY, "UTC")
    assert len(pieces) == 7
    assert [(gap.window.start.day, gap.pieces) for gap in gaps_of(pieces, counts, Grain.DAY, "UTC")] == [(3, 2), (6, 1)]


def test_a_window_shows_what_is_missing_at_both_ends() -> None:
    counts, window = walls(2), Interval(start=datetime(2026, 3, 1, tzinfo=UTC), end=datetime(2026, 3, 4, tzinfo=UTC))
    pieces = pieces_of(counts, window, Grain.DAY, "UTC")
    assert [gap.window.start.day for gap in gaps_of(pieces, counts, Grain.DAY, "UTC")] == [1, 3]


def test_an_hour_that_the_clock_skips_is_no_gap() -> None:
    """Berlin, 29 March 2026: after 01:59 comes 03:00."""
    day = datetime(2026, 3, 29)  # noqa: DTZ001 - wall clock times
    counts = {day + timedelta(hours=hour): 5 for hour in range(24) if hour != 2}
    pieces = pieces_of(counts, None, Grain.HOUR, "Europe/Berlin")
    assert len(pieces) == 23
    assert gaps_of(pieces, counts, Grain.HOUR, "Europe/Berlin") == ()


def test_a_piece_with_a_tenth_of_the_usual_rows_is_thin() -> None:
    counts = {**walls(1, 2, 3, 4), datetime(2026, 3, 5): 0.5}  # noqa: DTZ001 - wall clock times
    pieces = pieces_of(counts, None, Grain.DAY, "UTC")
    usual, thin = thin_of(pieces, {**counts, max(counts): 1000}, Grain.DAY, "UTC")
    assert (usual, thin) == (10, ())
    many = dict.fromkeys(walls(1, 2, 3), 1000) | {datetime(2026, 3, 4): 99}  # noqa: DTZ001 - wall clock times
    usual, thin = thin_of(pieces_of(many, None, Grain.DAY, "UTC"), many, Grain.DAY, "UTC")
    assert (usual, [each.rows for each in thin]) == (1000, [99])


def test_sentinel_times_do_not_make_millions_of_gaps() -> None:
    counts = walls(1) | {datetime(9998, 12, 31): 1}  # noqa: DTZ001 - wall clock times
    with pytest.raises(InvalidRequest, match="beyond the years"):
        pieces_of(counts, None, Grain.YEAR, "UTC")
    with pytest.raises(InvalidRequest, match="too many pieces"):
        pieces_of(counts, None, Grain.HOUR, "UTC")


@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(0, 60), min_size=1), st.sampled_from(["UTC", "America/New_York"]))
def test_pieces_with_rows_and_gaps_are_all_pieces(days: set[int], zone: str) -> None:
    counts = {datetime(2026, 3, 1) + timedelta(days=day): 1 for day in days}  # noqa: DTZ001 - wall clock times
    pieces = pieces_of(counts, None, Grain.DAY, zone)
    gaps = gaps_of(pieces, counts, Grain.DAY, zone)
    assert len(pieces) == len(counts) + sum(gap.pieces for gap in gaps)


def test_days_that_are_closed_are_expected_to_have_no_rows() -> None:
    """7 and 8 March 2026 are a weekend."""
    counts = walls(5, 10)
    pieces = pieces_of(counts, None, Grain.DAY, "UTC")
    closed = Calendar(Week.WEEKDAYS, frozenset({date(2026, 3, 9)}))
    assert [(gap.window.start.day, gap.pieces) for gap in gaps_of(pieces, counts, Grain.DAY, "UTC", closed)] == [(6, 1)]
    weekend = Interval(start=datetime(2026, 3, 6, 23, tzinfo=UTC), end=datetime(2026, 3, 8, 23, tzinfo=UTC))
    assert not closed.expects(weekend, "Europe/Berlin"), "days are those of the dataset's zone"
    assert closed.expects(weekend, "UTC")


def test_hours_that_few_days_have_are_not_missing_in_the_others() -> None:
    start = datetime(2026, 3, 1)  # noqa: DTZ001 - wall clock times
    hours = {start + timedelta(days=day, hours=hour): 1 for day in range(4) for hour in (8, 9, 10)}
    hours[start + timedelta(hours=20)] = 1
    del hours[start + timedelta(days=2, hours=9)]
    whole = Interval(start=start.replace(tzinfo=UTC), end=start.replace(tzinfo=UTC) + timedelta(days=5))
    found = missing_hours(t.cut(whole, Grain.DAY, "UTC"), hours, "UTC")
    assert [(gap.window.start.day, gap.window.start.hour, gap.pieces) for gap in found] == [(3, 9, 1)]


def test_requests_ask_for_exactly_the_windows_in_as_few_as_can_say_it() -> None:
    asked = Request(pipeline="daily")

    def day(first: int, last: int) -> Interval:
        return Interval(start=datetime(2026, 3, first, tzinfo=UTC), end=datetime(2026, 3, last, tzinfo=UTC))

    (one,) = window_requests(asked, [day(3, 4), day(4, 6)], "UTC", lists=True)
    assert (one.start, one.end, one.dates) == ("2026-03-03", "2026-03-06", ())
    (listed,) = window_requests(asked, [day(8, 9), day(3, 5)], "UTC", lists=True)
    assert [each.day for each in listed.dates] == [3, 4, 8]
    assert len(window_requests(asked, [day(8, 9), day(3, 5)], "UTC", lists=False)) == 2
    (local,) = window_requests(asked, [day(3, 4)], "Europe/Berlin", lists=True)
    assert (local.start, local.end) == ("2026-03-03T00:00Z", "2026-03-04T00:00Z")
    ranges = [OffsetRange(partition=0, start=1, end=4), OffsetRange(partition=0, start=9, end=10)]
    offsets = offset_request(asked, ranges)
    assert plan_command(offsets) == "backcast plan daily --offsets 0=1..4,0=9..10 --kind restatement"
