"""Windows at the ends of the calendar: written so that they sort, or refused in a sentence."""

from __future__ import annotations

from datetime import date

import pytest

from backcast.errors import InvalidRequest
from backcast.model.column import TimeColumn, TimeKind
from backcast.model.request import Request
from backcast.model.scope import during
from backcast.model.time import parse_instant
from backcast.plan.windows import requested_windows


@pytest.mark.parametrize(
    ("kind", "format_", "expected"),
    [
        (TimeKind.DATE, None, "0001-01-02"),
        (TimeKind.TIMESTAMP, None, "0001-01-02T00:00:00.000000Z"),
        (TimeKind.TIMESTAMP_NTZ, None, "0001-01-02T00:00:00.000000"),
        (TimeKind.STRING, "yyyy/MM/dd", "0001/01/02"),
        (TimeKind.INTEGER, "yyyyMMdd", "00010102"),
    ],
)
def test_the_second_day_of_the_calendar_is_written_with_four_digits_of_year(
    kind: TimeKind, format_: str | None, expected: str
) -> None:
    column = TimeColumn(column="t", kind=kind, format=format_)
    windows = requested_windows(Request(pipeline="p", dates=(date(1, 1, 2),)), "UTC")
    (clause,) = during((column,), windows).clauses
    assert clause.type == "time"
    assert clause.ranges[0][0] == expected
    column.value(clause.ranges[0][0])


@pytest.mark.parametrize(("day", "zone"), [(date(9999, 12, 31), "UTC"), (date(1, 1, 1), "Europe/Berlin")])
def test_a_day_whose_start_or_end_no_clock_shows_is_refused(day: date, zone: str) -> None:
    with pytest.raises(InvalidRequest, match="years 1 to 9999"):
        requested_windows(Request(pipeline="p", dates=(day,)), zone)


def test_a_window_that_starts_before_the_calendar_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="years 1 to 9999"):
        parse_instant("0001-01-01", "Europe/Berlin")
