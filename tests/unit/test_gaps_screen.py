"""The screen that tells what a dataset lacks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from backcast.cli.render.gaps import render_gaps
from backcast.model.calendar import Week
from backcast.model.gaps import Against, Differing, Fate, Gaps, Hole
from backcast.model.health import Gap
from backcast.model.log import OffsetRange
from backcast.model.request import Kind, Request
from backcast.model.time import Grain, Interval
from tests.unit.cli_screens import shown

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)


def days(first: int, last: int) -> Interval:
    return Interval(start=MONDAY + timedelta(days=first), end=MONDAY + timedelta(days=last))


def found(**more: Any) -> Gaps:
    values: dict[str, Any] = {
        "dataset": "daily",
        "table": "lake.shop.daily",
        "version": "7",
        "grain": Grain.DAY,
        "zone": "UTC",
        "window": days(0, 10),
        "rows": 40,
        "pieces": 10,
        "calendar": Week.WEEKDAYS,
        "closed": 0,
        "gaps": (),
        "hours": (),
        "holes": (),
        "positions": False,
        "against": None,
        "pipeline": "daily",
        "requests": (),
        "notes": (),
    }
    return Gaps(**{**values, **more})


def test_days_and_hours_are_told_with_the_command_that_plans_them() -> None:
    request = Request(pipeline="daily", dates=(MONDAY.date(),), kind=Kind.BACKFILL, reason="2 days without rows")
    gaps = (Gap(window=days(1, 3), pieces=2),)
    hours = (Gap(window=Interval(start=MONDAY, end=MONDAY + timedelta(hours=2)), pieces=2),)
    screen = shown(render_gaps(found(gaps=gaps, hours=hours, closed=2, requests=(request,))), width=120)
    assert "daily  GAPS" in screen
    assert "2 days without a row, in 1 place" in screen
    assert "2026-01-06 .. 2026-01-07  (2 days)" in screen
    assert "2 days without rows are no gap: weekends or closed days" in screen
    assert "2026-01-05 00:00 .. 2026-01-05 02:00  (2 hours)" in screen
    assert "backcast plan daily --dates 2026-01-05 --kind backfill --reason '2 days without rows'" in screen
    assert "backcast gaps daily --plan" in screen


def test_offsets_without_records_are_no_gap_and_others_are() -> None:
    hole = OffsetRange(partition=0, start=3, end=5)
    empty = found(positions=True, holes=(Hole(range=hole, fate=Fate.EMPTY),))
    assert empty.sound
    assert "2 offsets that no row carries: nothing is there in the topic either" in shown(render_gaps(empty), 120)
    for fate, told in ((Fate.THERE, "the topic has records there"), (Fate.GONE, "no longer has all of them")):
        lacking = found(positions=True, holes=(Hole(range=hole, fate=fate),))
        assert not lacking.sound
        assert told in shown(render_gaps(lacking), width=120)


def test_what_is_not_read_yet_is_no_gap_and_what_was_not_looked_for_is_said() -> None:
    pending = found(positions=True, pending=(OffsetRange(partition=1, start=3, end=5),))
    assert pending.sound
    screen = shown(render_gaps(pending), width=120)
    assert "no holes" in screen
    assert "2 offsets not read yet: 1=3..5" in screen
    partly = found(positions=True, between_rows="no pipeline that reads one topic fills the dataset")
    assert partly.sound
    told = "only holes between two rows were looked for: no pipeline that reads one topic fills the dataset"
    assert told in shown(render_gaps(partly), width=120)
    assert not found(positions=True, unanswered="no broker answers", between_rows="no broker answers").sound


def test_a_comparison_with_the_sources_tells_rows_or_why_it_cannot() -> None:
    differing = (Differing(window=days(1, 2), rows=1, expected=2),)
    screen = shown(render_gaps(found(against=Against(pipeline="daily", expected=41, differing=differing))))
    assert "1 day with another number of rows" in screen
    assert "2026-01-06  1, expected 2" in screen
    unknown = found(against=Against(pipeline="daily", expected=0, differing=(), problem="the log has gone"))
    assert not unknown.sound
    assert "daily cannot be judged: the log has gone" in shown(render_gaps(unknown))
    assert "as many in every day" in shown(
        render_gaps(found(against=Against(pipeline="daily", expected=40, differing=())))
    )
