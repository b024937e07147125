"""When the next commit to a stage may come: what a writer with Iceberg's defaults needs to land its own."""

from __future__ import annotations

import pytest

from backcast.targets.iceberg.pace import BURST, QUIET_SECONDS, SPAN_SECONDS, pause

NOW = 10_000.0
MINUTE = 60.0


def commits(number: int, ago: float = 1.0) -> list[float]:
    return [NOW - ago] * number


def test_less_than_a_burst_waits_for_nobody() -> None:
    for moved in (True, False):
        assert pause(commits(BURST - 1), [], NOW, moved=moved) == 0.0


def test_a_burst_is_counted_over_all_runs_whoever_is_known_to_write() -> None:
    """Two runs on two stages, or four workers of one, are one crowd to the writer of the table."""
    assert pause(commits(6), [], NOW, moved=True) == SPAN_SECONDS - 1
    assert pause(commits(6), [], NOW, moved=False) == QUIET_SECONDS - 1
    assert pause(commits(BURST, SPAN_SECONDS), [], NOW, moved=True) == 0.0
    assert pause(commits(BURST, QUIET_SECONDS), [], NOW, moved=False) == 0.0


@pytest.mark.parametrize(
    ("ago", "expected"),
    [
        pytest.param([8, 18, 28], SPAN_SECONDS, id="a stream with a trigger of ten minutes"),
        pytest.param([15, 16, 26], SPAN_SECONDS, id="once in a while it is late"),
        pytest.param([5], QUIET_SECONDS, id="nobody knows whether one commit has a second"),
        pytest.param([30, 31, 32], QUIET_SECONDS, id="a load half an hour ago"),
        pytest.param([30, 1470, 2910], QUIET_SECONDS, id="a load every night"),
        pytest.param([], QUIET_SECONDS, id="nobody"),
    ],
)
def test_a_writer_that_is_due_gets_the_room_of_one_that_was_seen(ago: list[float], expected: float) -> None:
    others = [NOW - each * MINUTE for each in ago]
    assert pause(commits(BURST, 0), others, NOW, moved=False) == expected


def test_a_clock_that_is_behind_the_tables_waits_one_span_at_most() -> None:
    assert pause(commits(BURST, -3600), [], NOW, moved=True) == SPAN_SECONDS
