"""A run that holds back: for a pace, for a pause, and for a live stream that has fallen behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backcast.cli.render.plan import render_plan
from backcast.errors import ConfigError, StateConflict
from backcast.model.live import LiveBatch, LiveStep, LiveStream, Stop
from backcast.model.report import Plan
from backcast.model.run import Holder, Lease
from backcast.model.throttle import Throttle
from backcast.project.config import load_project
from backcast.run.brake import LONGEST_SECONDS, POLL_SECONDS, Brake
from backcast.testing.samples import sample_manifest
from backcast.testing.store_stream_contract import sample_batch
from tests.unit.cli_screens import shown
from tests.unit.test_config_streams import _GOOD, _STREAM

HELD = Lease(
    name="stream/live",
    token=1,
    holder=Holder(owner="ann", host="here", pid=1, started="now"),
    expires_at=datetime(2026, 1, 1, tzinfo=UTC),
)


@dataclass
class Watch:
    """A clock that nobody waits for."""

    seconds: float = 0.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@dataclass
class Record:
    """Of one stream, which is a little less behind whenever somebody looks."""

    lags: Iterator[int]

    def batches(self, name: str, limit: int) -> list[LiveBatch]:
        assert (name, limit) == ("live", 1)
        batch = sample_batch(2)
        ends = {each.partition: each.end for each in batch.offsets}
        first = min(ends)
        return [batch.model_copy(update={"log_end": {**ends, first: ends[first] + next(self.lags)}})]

    def stream(self, name: str) -> LiveStream | None:
        raise NotImplementedError(name)

    def steps(self, name: str) -> list[LiveStep]:
        raise NotImplementedError(name)

    def asked(self, name: str) -> Stop | None:
        raise NotImplementedError(name)


@dataclass
class Braked:
    """A brake, and what it did."""

    throttle: Throttle
    lags: tuple[int, ...] = ()
    held: Lease | None = HELD
    gone: bool = False
    clock: Watch = field(default_factory=Watch)
    said: list[str] = field(default_factory=list)

    def brake(self) -> Brake:
        lags = iter((*self.lags, *([self.lags[-1]] * 10_000 if self.lags else [])))
        return Brake(
            self.throttle,
            Record(lags),
            lambda name: self.held,
            lambda holder: self.gone,
            self.clock,
            lambda: None,
            self.said.append,
        )


def test_a_job_that_was_faster_than_the_pace_rests_until_it_is_kept() -> None:
    done = Braked(Throttle(rows_per_second=100))
    done.brake().after_a_job(rows=1_000, seconds=4.0)
    assert done.clock.seconds == pytest.approx(6.0)
    assert done.said[0] == "rests 6 s"
    done.brake().after_a_job(rows=1_000, seconds=40.0)
    assert done.clock.seconds == pytest.approx(6.0), "it was slow enough"


def test_a_pause_is_kept_also_after_a_slow_job() -> None:
    done = Braked(Throttle(rows_per_second=100, pause_seconds=5))
    done.brake().after_a_job(rows=1_000, seconds=40.0)
    assert done.clock.seconds == pytest.approx(5.0)


def test_no_job_begins_while_a_live_stream_is_too_far_behind() -> None:
    done = Braked(Throttle(live_lag=50, streams=("live",)), lags=(90, 60, 50))
    done.brake().before_a_job()
    assert done.clock.seconds == pytest.approx(2 * POLL_SECONDS)
    assert done.said == ["waits: stream live is 90 records behind", "waits: stream live is 60 records behind"]


def test_a_stream_that_never_catches_up_delays_a_job_and_does_not_end_the_run() -> None:
    done = Braked(Throttle(live_lag=50, streams=("live",)), lags=(90,))
    done.brake().before_a_job()
    assert done.clock.seconds == pytest.approx(LONGEST_SECONDS)


@pytest.mark.parametrize(("held", "gone"), [(None, False), (HELD, True)])
def test_nobody_waits_for_a_stream_that_nobody_runs(held: Lease | None, gone: bool) -> None:
    done = Braked(Throttle(live_lag=50, streams=("live",)), lags=(90,), held=held, gone=gone)
    done.brake().before_a_job()
    assert done.clock.seconds == 0


def test_a_run_that_was_cancelled_stops_waiting() -> None:
    done = Braked(Throttle(live_lag=50, streams=("live",)), lags=(90,))
    brake = done.brake()

    def cancelled() -> None:
        raise StateConflict("cancelled")

    object.__setattr__(brake, "still", cancelled)
    with pytest.raises(StateConflict):
        brake.before_a_job()
    assert done.clock.seconds == 0


def test_the_configuration_knows_the_streams_of_the_table_and_the_plan_tells_it(tmp_path: Path) -> None:
    throttled = "output: daily, throttle: {rows_per_second: 5000, pause: 2s, live_lag: 1000}}"
    (tmp_path / "backcast.yaml").write_text(_GOOD.replace("output: daily}", throttled) + _STREAM)
    project = load_project(tmp_path, environ={})
    found = project.pipeline("daily").settings.throttle
    assert found == Throttle(rows_per_second=5000, pause_seconds=2, live_lag=1000, streams=("live",))
    assert project.pipeline("other").settings.throttle is None
    manifest = sample_manifest()
    told = manifest.model_copy(update={"settings": manifest.settings.model_copy(update={"throttle": found})})
    plan = Plan(manifest=told, sha256="0" * 64, run_id="daily-1", recorded=True, refused=False)
    said = "at most 5,000 rows a second, 2 s between jobs, waits while live is more than 1,000 records behind"
    assert said in " ".join(shown(render_plan(plan), 160).split())


def test_a_lag_of_no_stream_is_told_as_that() -> None:
    assert Throttle(live_lag=5).told() == "live_lag waits for nobody: no stream here writes to the table"
    assert Throttle().told() == ""


def test_a_pace_of_nothing_is_refused(tmp_path: Path) -> None:
    bad = "output: daily, throttle: {rows_per_second: 0}}"
    (tmp_path / "backcast.yaml").write_text(_GOOD.replace("output: daily}", bad))
    with pytest.raises(ConfigError, match="rows_per_second"):
        load_project(tmp_path, environ={})
