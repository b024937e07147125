"""The throttle of a run, changed while it is under way: on a real store and without Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from backcast.cli.dispatch import dispatch
from backcast.cli.render.status import render_status
from backcast.control import ControlPlane
from backcast.errors import InvalidRequest, StateConflict
from backcast.model.manifest import LivePolicy, Manifest
from backcast.model.run import Run
from backcast.model.states import RunState
from backcast.model.throttle import Throttle
from backcast.pacing import InForce
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.testing.lives import accepted_run, published_run
from backcast.testing.samples import sample_manifest
from tests.unit.cli_screens import shown
from tests.unit.projects import GOOD, project

STREAM = """\
sources:
  orders: {type: kafka, servers: "k:9092", topic: orders, value: {format: json, columns: "id BIGINT, at TIMESTAMP"}}
streams:
  live: {pipeline: feed, checkpoint: .checkpoints/live}
"""
FEED = "  feed: {sql: feed.sql, version: 1.0.0, inputs: {orders: orders}, output: daily}\n"


@pytest.fixture
def control(tmp_path: Path) -> Iterator[ControlPlane]:
    project(tmp_path, GOOD + FEED + STREAM)
    control = ControlPlane(Wiring(load_project(tmp_path, environ={})))
    yield control
    control.world.close()


def manifest(**settings: Any) -> Manifest:
    plain = sample_manifest(dataset="daily")
    return plain.model_copy(update={"settings": plain.settings.model_copy(update=settings)})


def planned(control: ControlPlane, **settings: Any) -> Run:
    return control.world.store().runs.create(manifest(**settings))


def typed(control: ControlPlane, run: Run, *options: str) -> int:
    where = control.world.project.root  # type: ignore[attr-defined]  # of the wiring
    return dispatch(["throttle", run.run_id, *options, "--project", str(where)])


def test_a_change_is_in_force_on_record_and_seen_by_a_process_that_runs(control: ControlPlane) -> None:
    run = planned(control, throttle=Throttle(rows_per_second=1_000, pause_seconds=5))
    in_force = InForce(control.world.store().runs, run.run_id, Throttle(rows_per_second=1_000, pause_seconds=5))
    assert in_force().rows_per_second == 1_000
    found = control.throttle(run.run_id, rows_per_second=500, hours="22:00-06:00")
    wanted = Throttle(rows_per_second=500, pause_seconds=5, hours="22:00-06:00 Europe/Berlin")
    assert found.in_force == control.status(run.run_id).throttled.in_force == in_force() == wanted  # type: ignore[union-attr]
    assert found.planned == Throttle(rows_per_second=1_000, pause_seconds=5)
    event = control.logs(run.run_id)[-1]
    assert (event.name, event.data["by"]) == ("throttle.changed", control.world.person().name)
    assert event.data["from"] == {"rows_per_second": 1_000, "hours": None}
    assert event.data["to"] == {"rows_per_second": 500, "hours": "22:00-06:00 Europe/Berlin"}
    assert control.throttle(run.run_id, rows_per_second=None, hours=None, pause_seconds=None).in_force == Throttle()
    assert in_force() == Throttle()


def test_the_plan_stays_as_it_was_approved(control: ControlPlane) -> None:
    run = planned(control)
    before = control.world.reader().manifest_text(run.run_id)
    control.throttle(run.run_id, rows_per_second=500)
    reader = control.world.reader()
    assert reader.manifest_text(run.run_id) == before
    assert reader.run(run.run_id) == run
    assert reader.verify_events(run.run_id) is None


def test_what_is_so_already_is_not_written_down_again(control: ControlPlane) -> None:
    run = planned(control)
    for _ in range(2):
        control.throttle(run.run_id, commits_per_hour=6)
    assert [event.name for event in control.logs(run.run_id)].count("throttle.changed") == 1


def test_a_lag_is_that_of_the_streams_that_write_to_the_table_now(control: ControlPlane) -> None:
    run = planned(control)
    assert control.throttle(run.run_id, live_lag=10).in_force == Throttle(live_lag=10, streams=("live",))
    assert "waits while live is more than 10 records behind" in control.throttle(run.run_id).in_force.told()


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ({"rows_per_second": 0}, "rows_per_second: .*greater than or equal to 1, got 0"),
        ({"live_lag": -1}, "live_lag"),
        ({"hours": "06:00-06:00"}, "hours: .*begins and ends at the same time"),
        ({"speed": 5}, "no limit is called speed"),
        ({"streams": "live"}, "no limit is called streams"),
    ],
)
def test_what_is_no_limit_is_refused_and_nothing_changes(
    control: ControlPlane, limits: dict[str, Any], problem: str
) -> None:
    run = planned(control)
    with pytest.raises(InvalidRequest, match=problem):
        control.throttle(run.run_id, **limits)
    assert control.throttle(run.run_id).changes == ()


def test_hours_do_not_keep_streams_frozen(control: ControlPlane) -> None:
    run = planned(control, live_policy=LivePolicy.FREEZE)
    with pytest.raises(InvalidRequest, match="would keep streams waiting"):
        control.throttle(run.run_id, hours="22:00-06:00")


def test_a_run_that_is_over_is_shown_and_not_changed(control: ControlPlane) -> None:
    run = published_run(control.world.store(), manifest(throttle=Throttle(rows_per_second=7)))
    with pytest.raises(StateConflict, match=f"run {run.run_id} is published: it begins no more jobs"):
        control.throttle(run.run_id, rows_per_second=5)
    found = control.throttle(run.run_id)
    assert (found.state, found.in_force, found.changes) == (RunState.PUBLISHED, Throttle(rows_per_second=7), ())


def test_a_run_that_may_be_staged_again_can_be_changed(control: ControlPlane) -> None:
    run = accepted_run(control.world.store(), manifest())
    assert control.throttle(run.run_id, parallel_jobs=1).in_force == Throttle(parallel_jobs=1)


def test_the_command_changes_shows_and_refuses(control: ControlPlane, capsys: pytest.CaptureFixture[str]) -> None:
    run = planned(control, throttle=Throttle(live_lag=5))
    assert typed(control, run, "--rows-per-second", "1000", "--pause", "2m", "--live-lag", "none") == 0
    out = capsys.readouterr().out
    assert "throttle    at most 1,000 rows a second, 120 s between jobs" in out
    assert "planned     live_lag waits for nobody" in out
    assert "changed     rows_per_second none to 1,000, pause_seconds 0 to 120, live_lag" in out
    assert typed(control, run, "--json") == 0
    assert json.loads(capsys.readouterr().out)["in_force"]["rows_per_second"] == 1_000
    assert typed(control, run, "--pause", "soon") == InvalidRequest.exit_code
    assert "--pause: 'soon' is not a duration" in capsys.readouterr().err
    assert typed(control, run, "--rows-per-second", "many") == InvalidRequest.exit_code
    over = published_run(control.world.store(), manifest(key=("day",)))
    assert typed(control, over, "--rows-per-second", "5") == StateConflict.exit_code
    assert "published" in capsys.readouterr().err


def test_the_status_shows_what_is_in_force_and_who_changed_it_while_chunks_are_left(control: ControlPlane) -> None:
    now = datetime.now(UTC)
    run = planned(control, throttle=Throttle(pause_seconds=5))
    assert "throttle    5 s between jobs\n" in shown(render_status(control.status(run.run_id), now))
    person = control.world.person().name
    control.throttle(run.run_id, pause_seconds=None, hours="22:00-06:00 UTC")
    told = shown(render_status(control.status(run.run_id), datetime(2026, 1, 4, 12, tzinfo=UTC)), 120)
    assert "throttle    jobs begin at 22:00-06:00 UTC only" in told
    assert "no job begins before 2026-01-04 22:00 UTC" in told
    assert f"hours none to 22:00-06:00 UTC  by {person}" in told
    plain = planned(control, key=("day",))
    assert "throttle" not in shown(render_status(control.status(plain.run_id), now))
    accepted = accepted_run(control.world.store(), manifest(throttle=Throttle(pause_seconds=6)))
    assert "throttle" not in shown(render_status(control.status(accepted.run_id), now)), "it computes no more"
