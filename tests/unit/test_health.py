"""Gaps in time, found from counts alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backcast.errors import InvalidRequest
from backcast.model.health import gaps_of, pieces_of, thin_of
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
