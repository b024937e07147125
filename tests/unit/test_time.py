"""Intervals and how zones cut them: any zone, grain and window, also across missing hours and days."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backcast.errors import InvalidRequest
from backcast.model import time as t
from backcast.model.time import Grain, Interval

ZONES = (
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Pacific/Apia",
    "Asia/Kathmandu",
    "America/Sao_Paulo",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "America/Havana",
    "Asia/Beirut",
)

instants = st.integers(0, 47 * 365 * 86_400).map(
    lambda seconds: datetime(1990, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)
windows = st.tuples(instants, st.timedeltas(min_value=timedelta(seconds=1), max_value=timedelta(days=400))).map(
    lambda each: Interval(start=each[0], end=each[0] + each[1])
)
zones = st.sampled_from(ZONES)
grains = st.sampled_from([Grain.DAY, Grain.WEEK, Grain.MONTH, Grain.YEAR])


def day_window(first: date, last: date, zone: str) -> Interval:
    return Interval(start=t.start_of_day(first, zone), end=t.start_of_day(last, zone))


@given(windows, grains, zones)
def test_pieces_cover_the_window_exactly_and_in_order(window: Interval, grain: Grain, zone: str) -> None:
    pieces = t.cut(window, grain, zone)
    assert (pieces[0].start, pieces[-1].end) == (window.start, window.end)
    assert all(left.end == right.start for left, right in pairwise(pieces))


@given(windows, grains, zones)
def test_no_piece_holds_two_local_days_weeks_months_or_years(window: Interval, grain: Grain, zone: str) -> None:
    for piece in t.cut(window, grain, zone):
        first, last = t.local(piece.start, zone), t.local(piece.end - timedelta(seconds=1), zone)
        assert t.floor_wall(first, grain) == t.floor_wall(last, grain)


@given(instants, st.integers(1, 72), zones)
def test_hours_are_elapsed_hours_that_start_on_the_local_hour(start: datetime, hours: int, zone: str) -> None:
    window = Interval(start=start, end=start + timedelta(hours=hours))
    pieces = t.cut(window, Grain.HOUR, zone)
    assert sum((piece.end - piece.start for piece in pieces), timedelta()) == timedelta(hours=hours)
    assert all(piece.end - piece.start <= timedelta(hours=1) for piece in pieces)


@given(instants, st.sampled_from(list(Grain)), zones)
def test_floor_and_ceil_enclose_the_instant_and_rest_on_boundaries(instant: datetime, grain: Grain, zone: str) -> None:
    low, high = t.floor_instant(instant, grain, zone), t.ceil_instant(instant, grain, zone)
    assert low <= instant <= high
    if grain is not Grain.HOUR:
        assert t.floor_instant(low, grain, zone) == low
        assert t.ceil_instant(high, grain, zone) == high


def test_a_day_that_does_not_exist_is_no_piece() -> None:
    """Samoa skipped 2011-12-30."""
    pieces = t.cut(day_window(date(2011, 12, 28), date(2012, 1, 2), "Pacific/Apia"), Grain.DAY, "Pacific/Apia")
    assert [t.local(piece.start, "Pacific/Apia").date().day for piece in pieces] == [28, 29, 31, 1]
    assert t.start_of_day(date(2011, 12, 30), "Pacific/Apia") == t.start_of_day(date(2011, 12, 31), "Pacific/Apia")


def test_a_day_starts_at_its_first_instant_even_when_midnight_is_skipped() -> None:
    start = t.start_of_day(date(2018, 11, 4), "America/Sao_Paulo")
    assert t.local(start, "America/Sao_Paulo").isoformat() == "2018-11-04T01:00:00"


def test_a_day_with_25_hours_has_25_hours() -> None:
    zone = "America/New_York"
    window = day_window(date(2013, 11, 3), date(2013, 11, 4), zone)
    assert window.end - window.start == timedelta(hours=25)
    assert len(t.cut(window, Grain.HOUR, zone)) == 25


def test_weeks_start_on_monday() -> None:
    pieces = t.cut(day_window(date(2026, 1, 1), date(2026, 1, 20), "UTC"), Grain.WEEK, "UTC")
    assert [piece.start.date() for piece in pieces] == [date(2026, 1, 1), *(date(2026, 1, d) for d in (5, 12, 19))]


@given(windows, windows)
def test_minus_leaves_exactly_what_the_other_does_not_cover(left: Interval, right: Interval) -> None:
    pieces = left.minus(right)
    assert all(not piece.overlaps(right) and left.contains(piece) for piece in pieces)
    shared = max(timedelta(), min(left.end, right.end) - max(left.start, right.start))
    assert sum((piece.end - piece.start for piece in pieces), timedelta()) == left.end - left.start - shared


@pytest.mark.parametrize("text", ["yesterday", "2025-13-01", "2025-02-30", "01/02/2025", ""])
def test_a_bad_date_is_named_with_examples_of_good_ones(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        t.parse_instant(text, "UTC")
    assert repr(text) in caught.value.message
    assert "2025-01-31" in caught.value.hint


def test_a_local_time_is_read_in_the_datasets_zone_and_an_offset_wins() -> None:
    assert t.parse_instant("2025-07-01T05:00", "Europe/Berlin") == datetime(2025, 7, 1, 3, tzinfo=UTC)
    assert t.parse_instant("2025-07-01T05:00Z", "Europe/Berlin") == datetime(2025, 7, 1, 5, tzinfo=UTC)


def test_an_empty_or_backward_interval_cannot_be_made() -> None:
    now = datetime(2025, 1, 1, tzinfo=UTC)
    for end in (now, now - timedelta(days=1)):
        with pytest.raises(ValueError, match="must end after it starts"):
            Interval(start=now, end=end)
