"""A cancelled run has no stage, so its screen shows no chunks of one."""

from __future__ import annotations

from backcast.cli.render.status import render_status
from backcast.model.states import RunState
from tests.unit.cli_screens import NOW, sample_status, shown


def test_the_screen_of_a_cancelled_run_shows_no_chunks() -> None:
    page = shown(render_status(sample_status(RunState.CANCELLED, "##."), NOW))
    assert "CANCELLED" in page
    assert "staged" not in page
    assert "■" not in page
