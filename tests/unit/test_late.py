"""Which batch read an offset, with which watermark; and the screens that tell what was left out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from backcast.cli.render.late import render_late
from backcast.model.gaps import PlannedFix
from backcast.model.late import Lateness, LatePiece, LateReport, ReadHistory
from backcast.model.request import Kind, Request
from backcast.model.time import Grain, Interval
from tests.unit.cli_screens import shown

DAY = datetime(2026, 1, 5, tzinfo=UTC)
MICROS = int(DAY.timestamp()) * 1_000_000


def test_rows_are_late_by_the_watermark_of_the_batch_before_theirs() -> None:
    batches = [(0, {0: 5}, None), (1, {0: 9, 1: 4}, DAY), (2, {0: 12, 1: 4}, DAY + timedelta(hours=1))]
    history = ReadHistory.of(batches)
    assert history.ends == {0: (5, 9, 12), 1: (0, 4, 4)}
    assert history.marks == (None, None, MICROS)
    assert history.from_start


def test_of_the_oldest_batch_on_record_only_the_most_is_known_that_the_watermark_can_have_been() -> None:
    history = ReadHistory.of([(7, {0: 5}, DAY), (8, {0: 9}, DAY + timedelta(hours=1))])
    assert history.marks == (MICROS, MICROS)
    assert not history.from_start
    assert ReadHistory.of([]) == ReadHistory({}, (), from_start=False)


def piece(hour: int, **counts: int | bool) -> LatePiece:
    window = Interval(start=DAY + timedelta(hours=hour), end=DAY + timedelta(hours=hour + 1))
    return LatePiece(window=window, **{"added": 0, "changed": 1, "removed": 0, **counts})


def report(*pieces: LatePiece, **more: object) -> LateReport:
    return LateReport(
        stream="live",
        pipeline="hourly",
        dataset="hourly",
        table="lake.shop.hourly",
        version="7",
        topic="orders",
        checkpoint="live",
        batch=12,
        watermark=DAY + timedelta(hours=9),
        oldest=0,
        by="pieces",
        grain=Grain.HOUR,
        zone="UTC",
        window=Interval(start=DAY, end=DAY + timedelta(days=1)),
        expected=30,
        rows=29,
        pieces=pieces,
        **more,  # type: ignore[arg-type]
    )


def test_what_is_only_on_its_way_is_not_left_out() -> None:
    assert report().sound
    assert report(piece(1, pending=3), piece(9, is_open=True)).sound
    assert not report(piece(1, late=2), piece(2, pending=3)).sound
    assert piece(1, late=2, pending=1).held_back
    found = report(piece(1, late=2), piece(2, late=3, pending=3))
    assert (found.total(Lateness.LATE), found.total(Lateness.PENDING)) == (5, 3)
    assert "STILL TO COME" in shown(render_late(report(piece(9, is_open=True))))
    assert "NOTHING LEFT OUT" in shown(render_late(report()))


def test_the_screen_names_the_plan_for_exactly_that_or_what_became_of_it() -> None:
    request = Request(
        pipeline="hourly", start="2026-01-05T01:00Z", end="2026-01-05T02:00Z", kind=Kind.REPAIR, reason="2 late records"
    )
    screen = shown(render_late(report(piece(1, late=2), requests=(request,), notes=("1 hour left out",))), width=120)
    assert "2 records came after the watermark that was in force when they were read" in screen
    assert "backcast plan hourly --from 2026-01-05T01:00Z --to 2026-01-05T02:00Z --kind repair" in screen
    assert "backcast late live --plan" in screen
    assert "1 hour left out" in screen
    fixes = (
        PlannedFix(run_id="hourly-20260105-abcdef", recorded=True, chunks=1),
        PlannedFix(run_id="other", recorded=False, chunks=1, problem="the log has gone"),
    )
    screen = shown(render_late(report(piece(1, late=2), requests=(request,), plans=fixes), asked=True))
    assert "backcast run hourly-20260105-abcdef" in screen
    assert "refused  the log has gone" in screen
