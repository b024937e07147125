"""What people see of how a replay went."""

from __future__ import annotations

from datetime import UTC, datetime

from backcast.cli.render.status import render_status
from backcast.model.replay import Replayed
from backcast.model.states import RunState
from tests.unit.cli_screens import sample_status, shown

NOW = datetime(2026, 3, 1, 15, tzinfo=UTC)


def lines(**told: float) -> list[str]:
    status = sample_status(RunState.ACCEPTED, "###", replayed=Replayed.model_validate(told))
    return [line.strip() for line in shown(render_status(status, NOW), 120).splitlines()]


def test_the_status_tells_how_fast_the_past_went_by() -> None:
    screen = lines(batches=6, seconds=30.0, event_seconds=86_400.0)
    assert any("1 day of events in 30 s, 6 batches: 2,880.0 times as fast as they happened" in line for line in screen)
    assert not any("less than" in line for line in screen)


def test_a_slow_replay_says_so_and_what_helps() -> None:
    screen = lines(batches=1, seconds=600.0, event_seconds=3_600.0)
    told = next(at for at, line in enumerate(screen) if "6.0 times as fast" in line)
    assert screen[told + 1] == "less than 10 times: raise most_per_trigger of the stream, or give Spark more cores"
