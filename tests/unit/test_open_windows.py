"""What a stream has still to write when a run restates its table: from when on, and what a plan says about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from backcast.model.column import TimeColumn, TimeKind
from backcast.model.finding import Finding, Severity
from backcast.model.late import Closing, Holding, OpenWindows
from backcast.model.scope import EVERYTHING, Scope
from backcast.model.table import PartitionField
from backcast.model.time import Interval
from backcast.plan.open_findings import open_findings
from backcast.plan.windows import Partitioning, partitioning

_HOUR = 3_600_000_000
_HOURLY = Closing(every=_HOUR, length=_HOUR)
_DAILY = Closing(every=24 * _HOUR, length=24 * _HOUR)
_ZERO = datetime(2026, 1, 1, tzinfo=UTC)


def at(hour: float) -> datetime:
    return _ZERO + timedelta(hours=hour)


@pytest.mark.parametrize(
    ("held", "watermark", "written"),
    [
        (Holding((_HOURLY,)), 8.33, 8),
        (Holding((_HOURLY,)), 8.99, 8),
        (Holding((_HOURLY,)), 9, 9),
        (Holding((Closing(every=_HOUR // 4, length=_HOUR),)), 8.33, 7.5),
        (Holding((Closing(every=_HOUR // 4, length=_HOUR),)), 8.5, 7.75),
        (Holding((Closing(every=_HOUR, length=_HOUR, origin=_HOUR // 2),)), 8.33, 7.5),
        (Holding((_DAILY,)), 23.9, 0),
        (Holding((_DAILY,)), 24, 24),
        (Holding((_HOURLY, _DAILY)), 30, 24),
        (Holding(), 8.25, 8.25),
        (Holding(unknown=True), 8.25, 6.25),
        (Holding((_HOURLY,), unknown=True), 8.25, 6.25),
        (Holding((_DAILY,), unknown=True), 8.25, 0),
    ],
)
def test_a_window_is_open_until_the_watermark_has_reached_its_end(
    held: Holding, watermark: float, written: float
) -> None:
    assert held.written_until(at(watermark), timedelta(hours=2)) == at(written)


def found(
    stream: OpenWindows, *windows: tuple[float, float], unit: str = "", zone: str = "UTC", exact: bool = False
) -> list[Finding]:
    column = TimeColumn(column="start", kind=TimeKind.TIMESTAMP, zone=zone)
    scope = Scope(
        windows=tuple(Interval(start=at(a), end=at(b)) for a, b in windows), predicate=EVERYTHING, exact=exact
    )
    return open_findings([stream], scope, cut_by(column, unit))


def cut_by(column: TimeColumn, unit: str) -> Partitioning:
    return partitioning(column, (PartitionField(source="start", transform=unit, name="part"),) if unit else ())


LIVE = OpenWindows("live", since=at(8), watermark=at(8.5))


def test_a_window_that_the_stream_still_writes_to_is_refused_and_one_before_it_is_not() -> None:
    assert found(LIVE, (4, 8)) == []
    assert found(LIVE, (1, 2), (4, 8), unit="hour") == []
    (told,) = found(LIVE, (4, 9), unit="hour")
    assert (told.code, told.severity) == ("stream.still-open", Severity.BLOCK)
    assert told.reason == (
        "stream live has still to write rows from 2026-01-01 08:00 UTC on (its watermark is 2026-01-01 08:30:00 UTC):"
        " it will write them, and those of both would be in the table twice"
    )
    assert told.remedy.startswith("end the window at 2026-01-01T08:00Z, or plan again when its watermark has passed")
    assert "(backcast stream status live); if it never runs again, take stream live out" in told.remedy


@pytest.mark.parametrize(
    ("more", "remedy"),
    [
        ({"unit": "day"}, "end the window at 2026-01-02, or plan again"),
        ({"unit": "day", "exact": True}, "end the window at 2026-01-02T08:00Z, or plan again"),
        ({"unit": "month"}, "plan again"),
        ({"zone": "Asia/Kolkata"}, "end the window at 2026-01-02T08:00Z, or plan again"),
    ],
)
def test_the_end_that_is_offered_is_one_that_would_not_be_widened_again(more: dict[str, Any], remedy: str) -> None:
    live = OpenWindows("live", since=at(32), watermark=at(32.5))
    (told,) = found(live, (4, 33), **more)
    assert told.remedy.startswith(remedy)


def test_where_nothing_is_written_yet_or_no_window_is_asked_for_everything_is_open() -> None:
    (told,) = found(OpenWindows("live", since=None, watermark=None), (4, 8))
    assert told.reason.startswith("stream live has no watermark yet, and has still to write what it has read")
    assert told.remedy.startswith("plan again when")
    (told,) = found(LIVE)
    assert told.severity is Severity.BLOCK, "rows of an append by offsets may be of any time"
    (told,) = found(OpenWindows("live", at(8), at(8.5), external=True), (9, 10))
    assert told.remedy.startswith("plan again when its watermark has passed the end of the window (backcast stream lag")


def test_a_checkpoint_that_cannot_be_read_is_a_warning() -> None:
    (told,) = found(OpenWindows("live", None, None, external=True, known=False), (4, 8))
    assert (told.code, told.severity) == ("stream.unreadable", Severity.WARN)
