"""Hours in which jobs begin: across midnight, by the clock of a zone, and on the nights when that is moved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backcast.errors import ConfigError
from backcast.model.hours import Hours
from backcast.model.throttle import Throttle
from backcast.project.config import load_project
from tests.unit.test_config_streams import _GOOD


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def opens(hours: str, now: str) -> datetime | None:
    return Hours.parse(hours).next(at(now))


def test_a_night_lasts_on_both_sides_of_midnight() -> None:
    night = "22:00-06:00"
    assert opens(night, "2026-01-04T22:00") is None
    assert opens(night, "2026-01-04T23:59") is None
    assert opens(night, "2026-01-05T00:00") is None
    assert opens(night, "2026-01-05T05:59:59") is None
    assert opens(night, "2026-01-05T06:00") == at("2026-01-05T22:00"), "the end is no part of it"
    assert opens(night, "2026-01-05T21:59:59") == at("2026-01-05T22:00")


def test_hours_of_one_day_begin_again_on_the_next() -> None:
    day = "09:00-17:30"
    assert opens(day, "2026-01-04T08:00") == at("2026-01-04T09:00")
    assert opens(day, "2026-01-04T17:29") is None
    assert opens(day, "2026-01-04T17:30") == at("2026-01-05T09:00")
    assert opens("18:00-00:00", "2026-01-04T23:59") is None, "midnight ends a day"


def test_the_clock_of_the_zone_counts_in_winter_and_in_summer() -> None:
    night = "22:00-06:00 Europe/Berlin"
    assert opens(night, "2026-01-05T20:59") == at("2026-01-05T21:00")
    assert opens(night, "2026-07-05T19:59") == at("2026-07-05T20:00")
    assert opens(night, "2026-07-05T04:00") == at("2026-07-05T20:00")


@pytest.mark.parametrize(("day", "length"), [("2026-03-28", 7), ("2026-10-24", 9)])
def test_the_night_when_the_clock_is_moved_is_an_hour_shorter_or_longer(day: str, length: int) -> None:
    begin = opens("22:00-06:00 Europe/Berlin", f"{day}T12:00")
    assert begin is not None
    hours = Hours.parse("22:00-06:00 Europe/Berlin")
    assert hours.next(begin + timedelta(hours=length, seconds=-1)) is None
    assert hours.next(begin + timedelta(hours=length)) is not None


def test_hours_that_the_clock_skips_or_shows_twice() -> None:
    assert opens("02:30-04:00 Europe/Berlin", "2026-03-29T00:59") == at("2026-03-29T01:00"), "half past two is never"
    assert opens("02:10-02:50 Europe/Berlin", "2026-03-29T00:30") == at("2026-03-30T00:10"), "nor are these"
    assert opens("02:30-04:00 Europe/Berlin", "2026-10-25T01:15") is None, "half past two was before"
    assert opens("01:00-02:30 Europe/Berlin", "2026-10-25T00:30") is not None, "the first half past two ends them"


def project(tmp_path: Path, throttle: str, more: str = "") -> Throttle | None:
    text = _GOOD.replace("output: daily}", f"output: daily, throttle: {{{throttle}}}{more}}}")
    (tmp_path / "backcast.yaml").write_text(text)
    return load_project(tmp_path, environ={}).pipeline("daily").settings.throttle


def test_the_configuration_takes_hours_with_a_zone_or_in_that_of_the_dataset(tmp_path: Path) -> None:
    assert project(tmp_path, "hours: 22:00-06:00") == Throttle(hours="22:00-06:00 UTC")
    assert project(tmp_path, "hours: 9:30-17:00 Asia/Tokyo") == Throttle(hours="09:30-17:00 Asia/Tokyo")
    everything = project(tmp_path, "bytes_per_minute: 1000, commits_per_hour: 6, parallel_jobs: 2")
    assert everything == Throttle(bytes_per_minute=1000, commits_per_hour=6, parallel_jobs=2)
    told = "at most 1,000 bytes a minute, at most 6 commits to the stage in an hour, at most 2 jobs at once"
    assert everything.told() == told


@pytest.mark.parametrize(
    ("hours", "problem"),
    [
        ("06:00-06:00", r"throttle\.hours.*begins and ends at the same time"),
        ("22-06", r"throttle\.hours.*expected hours such as 22:00-06:00"),
        ("24:00-06:00", r"throttle\.hours.*expected a time of day from 00:00 to 23:59, got '24:00'"),
        ("22:00-06:00 Berlin", r"throttle\.hours.*expected a time zone such as UTC or Europe/Berlin, got 'Berlin'"),
    ],
)
def test_hours_that_are_none_are_refused_by_name(tmp_path: Path, hours: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        project(tmp_path, f"hours: '{hours}'")


@pytest.mark.parametrize("limit", ["bytes_per_minute", "commits_per_hour", "parallel_jobs"])
def test_a_limit_of_nothing_is_refused_by_name(tmp_path: Path, limit: str) -> None:
    with pytest.raises(ConfigError, match=limit):
        project(tmp_path, f"{limit}: 0")


def test_hours_do_not_keep_streams_frozen(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="would keep streams waiting"):
        project(tmp_path, "hours: 22:00-06:00", ", publish: {live: freeze}")


def test_for_a_run_for_which_a_stream_stands_any_time_will_do(tmp_path: Path) -> None:
    throttle = Throttle(hours="22:00-06:00 UTC", rows_per_second=5)
    assert throttle.at_any_time() == Throttle(rows_per_second=5)


def test_a_manifest_from_before_hours_keeps_its_bytes() -> None:
    assert set(Throttle(rows_per_second=5).as_json()) == {"rows_per_second", "pause_seconds", "live_lag", "streams"}
