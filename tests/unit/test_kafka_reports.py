"""What `backcast kafka` tells: where a moment or a window of event time lies, and how disordered it is."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backcast.cli.render.topic import render_hand_over, render_offsets, render_window
from backcast.errors import InvalidRequest
from backcast.model.log import Isolation, OffsetRange
from backcast.model.states import RunState
from backcast.model.time import Interval, parse_interval
from backcast.model.topic_report import HandOver, PartitionOffsets, PartitionSurvey, TopicOffsets, WindowSurvey
from backcast.sources.kafka.survey import Block, backward
from tests.unit.cli_screens import shown

AT = datetime(2026, 1, 5, 12, 0, 0, 250_000, tzinfo=UTC)


def offsets() -> TopicOffsets:
    found = PartitionOffsets(partition=0, log_start=100, offset=1_200, log_end=5_000, record_time=AT)
    silent = PartitionOffsets(partition=1, log_start=0, offset=None, log_end=40, record_time=None)
    return TopicOffsets(
        source="orders",
        topic="shop.orders",
        topic_id="x",
        isolation=Isolation.COMMITTED,
        timestamp_type="CreateTime",
        at=AT,
        partitions=(found, silent),
    )


def window(*, unreadable: int = 0, to_end: bool = False) -> WindowSurvey:
    held = PartitionSurvey(
        partition=0,
        scanned=OffsetRange(partition=0, start=100, end=900),
        first=120,
        last=450,
        matching=300,
        foreign=31,
        unreadable=unreadable,
        backward_seconds=75.0,
    )
    none = PartitionSurvey(partition=1, scanned=OffsetRange(partition=1, start=7, end=7))
    day = Interval(start=datetime(2026, 1, 5, tzinfo=UTC), end=datetime(2026, 1, 6, tzinfo=UTC))
    return WindowSurvey(
        source="orders",
        topic="shop.orders",
        column="at",
        zone="UTC",
        window=day,
        to_end=to_end,
        partitions=(held, none),
    )


def test_a_hand_over_ends_with_what_to_type_once_readers_see_the_bootstrap() -> None:
    found = HandOver(
        run_id="orders-1",
        state=RunState.SUPERSEDED,
        source="orders",
        topic="shop.orders",
        starting_offsets={"shop.orders": {0: 20, 1: 0}},
        streams=("live",),
    )
    told = shown(render_hand_over(found)).splitlines()
    assert told[-1].split("  ")[-1] == "backcast stream start live"
    assert 'startingOffsets  {"shop.orders": {"0": 20, "1": 0}}' in told[-3]
    early = shown(render_hand_over(found.model_copy(update={"state": RunState.ACCEPTED})))
    assert "not published yet: start the stream after that" in early
    assert "backcast stream start" not in early


def test_a_moment_is_shown_per_partition_with_what_follows_it() -> None:
    page = shown(render_offsets(offsets()))
    assert "at 2026-01-05 12:00:00.250Z, read_committed, CreateTime" in page
    assert "0        100   1,200    5,000       3,800  2026-01-05 12:00:00.250Z" in page
    assert "1          0       -       40           0" in page
    assert "2 partitions   3,800 offsets from there" in page
    assert "1 partition with no record that late" in page
    assert "later offsets may carry earlier ones" in page
    assert max(map(len, page.splitlines())) <= 80


def test_a_window_is_shown_with_its_disorder_and_the_offsets_to_copy() -> None:
    page = shown(render_window(window()))
    assert "at in 2026-01-05" in page
    assert "0    120   450        300       31  1 min 15 s  100..900" in page
    assert "300 records in the window, 31 foreign between them" in page
    assert "--to-end scans the rest" in page
    assert "offsets  0=120..451" in page
    assert "decoded" not in page
    assert max(map(len, page.splitlines())) <= 80
    assert "2 records could not be decoded and may belong" in shown(render_window(window(unreadable=2)))
    assert "scanned to the end of the log" in shown(render_window(window(to_end=True)))


def test_both_answers_survive_their_way_as_json() -> None:
    assert TopicOffsets.model_validate(offsets().as_json()) == offsets()
    assert WindowSurvey.model_validate(window().as_json()) == window()


def block(times: list[int]) -> Block:
    behind = max(max(times[: place + 1]) - time for place, time in enumerate(times))
    return Block(min(times), max(times), behind)


@given(st.lists(st.lists(st.integers(-50, 50), min_size=1, max_size=6), max_size=6))
def test_disorder_is_the_same_however_records_are_cut_into_blocks(blocks: list[list[int]]) -> None:
    together = [time for each in blocks for time in each]
    expected = block(together).backward if together else 0
    assert backward(map(block, blocks)) == expected


def test_a_window_is_half_open_and_dates_begin_where_the_source_is() -> None:
    found = parse_interval("2026-01-31..2026-02-01", "UTC")
    assert (found.start, found.end) == (datetime(2026, 1, 31, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC))
    assert parse_interval("2026-01-31..2026-02-01", "Europe/Berlin").start == datetime(2026, 1, 30, 23, tzinfo=UTC)
    assert parse_interval("2026-01-31T05:00Z..2026-01-31T06:00Z", "Europe/Berlin").start.hour == 5
    for wrong, message in (
        ("2026-01-31", "is not a window"),
        ("2026-01-31..", "is not a window"),
        ("2026-01-31..2026-01-31", "holds no time"),
        ("2026-02-01..2026-01-31", "holds no time"),
        ("2026-01-31..soon", "'soon' is not a date or time"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            parse_interval(wrong, "UTC")
