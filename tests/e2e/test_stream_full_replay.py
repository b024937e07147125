"""A stream's table is computed anew from its topic, and the query that did it goes on as the stream: exactly once."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.beside import newest_commit, proven
from backcast.cli.dispatch import dispatch
from backcast.control import ControlPlane
from backcast.demo.shell import in_process
from backcast.errors import BackcastError, Drifted, LeaseHeld, Refused, StateConflict
from backcast.model import full_replay as steps
from backcast.model.full_replay import CaughtUp
from backcast.model.live import Stop, replay_lease, slice_lease
from backcast.model.pipeline import TableFormat
from backcast.model.request import Request
from backcast.model.states import RunState
from backcast.testing.faults import SimulatedCrash, at_point, crash_at
from backcast.testing.kafka_topics import wait_until
from tests.cheap import cheap
from tests.crash.life import DoomedWiring
from tests.died import died
from tests.e2e.test_stream_replay import Shop

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.testing.kafka import KafkaBroker

WHY = Request(pipeline="hourly", reason="amounts were net")


@pytest.fixture(params=list(TableFormat))
def shop(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    spark: SparkSession,
    broker: KafkaBroker,
    namespace: str,
    lake_root: Path,
) -> Shop:
    """A stateful stream of ours that has read ten hours and written nine."""
    delta = request.param is TableFormat.DELTA
    table = f"delta.`{tmp_path}/lake/hourly`" if delta else f"{namespace}.hourly"
    made = Shop(tmp_path, spark, broker, table, lake_root)
    file = tmp_path / "backcast.yaml"
    file.write_text(file.read_text().replace("    external: true\n", ""))
    made.send([number / 6 for number in range(60)], 0)
    _live(made)
    # Its batches are not those of the stream: the last one would go beyond where that stands.
    file.write_text(file.read_text().replace("most_per_trigger: 20", "most_per_trigger: 50"))
    return made


def _live(shop: Shop) -> None:
    """The live runner takes what is there."""
    shop.control().stream_start("live", once=True)


def _live_without_end(shop: Shop) -> dict[int, int]:
    """The same, stopped behind its next batch: windows that this one closes are not written. Where it stands then."""
    control = shop.control()
    before = control.stream_status("live").batches[0]

    def asked() -> Stop | None:
        newest = control.stream_status("live").batches[0]
        return Stop.BOUNDARY if newest.landed and newest.batch > before.batch else None

    found = control.stream_start("live", once=True, asked=asked)
    assert found.batches[0].batch == before.batch + 1
    return {each.partition: each.end for each in found.batches[0].offsets}


def _wanted(hours: range, factor: int) -> dict[int, tuple[int, str]]:
    return dict.fromkeys(hours, (6, f"{6 * factor}.00"))


@contextmanager
def _without(shop: Shop) -> Iterator[None]:
    """What the replay has computed is on a disk that is not there."""
    folder = shop.root / ".backcast" / "full-replays"
    folder.rename(shop.root / "elsewhere")
    yield
    shutil.rmtree(folder, ignore_errors=True)
    (shop.root / "elsewhere").rename(folder)


def _position(control: ControlPlane) -> dict[int, int]:
    """Up to where a plan takes the table to have the stream's rows."""
    world = control.world
    spec, live = world.stream("live"), world.stream_reader().stream("live")
    assert live is not None
    assert live.query_id is not None
    query = world.live_query(spec)
    commit = newest_commit(world, spec, query, live.query_id)
    assert commit is not None
    return proven(world, spec, query, live.query_id, commit)


def caught_up(control: ControlPlane) -> CaughtUp:
    control.stream_replay_stop("live")
    found = control.stream_replay_slice("live", last=True)
    control.stream_replay_step("live", steps.CAUGHT_UP, **found.as_json())
    return found


def publish(control: ControlPlane, why: Request = WHY) -> str:
    plan = control.plan(control.stream_replay_request("live", why))
    assert not plan.refused, plan.findings
    control.stream_replay_step("live", steps.PLANNED, run_id=plan.run_id)
    run = control.run(plan.run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    control.publish(plan.run_id)
    control.stream_replay_step("live", steps.PUBLISHED)
    return plan.run_id


def test_a_table_is_replayed_and_its_stream_goes_on_behind_it(shop: Shop) -> None:
    """Through crashes in slices and in the exchange, and a partition that is added meanwhile. Windows that the stream
    had not written are written by its successor, so that an undo later leaves none out.
    """
    shop.send([10 + number / 6 for number in range(12)], 60)
    ends = _live_without_end(shop)
    assert shop.hours() == _wanted(range(9), 1)
    shop.send([12 + number / 6 for number in range(12)], 72)
    shop.deploy("10")
    control = shop.control()
    begun = control.stream_replay("live")
    assert control.stream_replay("live") == begun, "the same command goes on"
    with control.stream_replay_alone("live"), pytest.raises(LeaseHeld):
        shop.control().stream_replay_alone("live")
    for name in ("catch-up.after-batches", "catch-up.after-cut", "full-replay.after-slice"):
        with crash_at(name), pytest.raises(SimulatedCrash):
            shop.control(DoomedWiring).stream_replay_slice("live")
        if name == "catch-up.after-batches":
            shop.broker.add_partitions(shop.topic, 3)

    def meanwhile() -> None:
        control.stream_replay_stop("live")

    with pytest.raises(Refused, match="a full replay has stopped stream live, and is not over"):
        # It was about to start when the replay stopped it.
        shop.control().stream_start("live", once=True, asked=meanwhile)
    for name in ("catch-up.after-cut", "catch-up.after-batches"):
        with crash_at(name), pytest.raises(SimulatedCrash):
            shop.control(DoomedWiring).stream_replay_slice("live", last=True)
    found = caught_up(control)
    assert (found.ends, found.behind) == (ends | {2: 0}, 0), "to the record where the stream stands"
    with pytest.raises(Refused, match="a full replay has stopped stream live, and is not over"):
        _live(shop)
    with pytest.raises(StateConflict, match="not published"):
        control.stream_replay_swap("live")
    run_id = publish(control)
    with _without(shop), pytest.raises(Refused, match="no longer has the query") as told:
        # Whatever is empty takes the place of the stream's checkpoint otherwise.
        control.stream_replay_swap("live")
    assert f"backcast undo {run_id}" in told.value.hint
    assert shop.hours() == _wanted(range(9), 10)
    with pytest.raises(StateConflict, match="a second time"):
        control.stream_replay_end("live", given_up=True)
    for name in ("full-replay.before-exchange", "full-replay.after-exchange", "full-replay.after-swap"):
        with crash_at(name), pytest.raises(SimulatedCrash):
            shop.control(DoomedWiring).stream_replay_swap("live")
    assert _position(control) == ends, "who plans now leaves to the stream what it has not read"
    swapped = control.stream_replay_swap("live")
    assert control.stream_replay_swap("live") == swapped, "once"
    assert _position(control) == found.ends
    assert Path(swapped.kept or "").is_dir(), "the checkpoint before is kept, whichever of the commands put it aside"
    with pytest.raises(StateConflict, match="nothing left to give up"):
        control.stream_replay_end("live", given_up=True)
    control.stream_replay_end("live")
    assert not (shop.root / ".backcast" / "full-replays" / "live").exists()
    _live(shop)
    assert shop.hours() == _wanted(range(13), 10), "windows that were open at the exchange are whole"
    shop.control().undo(run_id)
    after = shop.hours()
    assert after == _wanted(range(9), 1) | _wanted(range(9, 13), 10), "what the new query wrote since stays"


def test_one_that_is_given_up_leaves_all_as_it_was(shop: Shop) -> None:
    control = shop.control()
    shop.deploy("10")
    control.stream_replay("live", "2026-01-01T04:00:00")
    with pytest.raises(StateConflict, match="is not over"):
        control.stream_replay("live")

    def look() -> None:
        held = control.world.reader().holder(slice_lease("live"))
        assert held is not None
        assert held.holder.jvm_pid is not None, "who takes over ends what may still write"

    with at_point("full-replay.after-slice", look):
        control.stream_replay_slice("live")
    shop.deploy("100")
    with pytest.raises(Drifted, match="rows would be of both"):
        shop.control().stream_replay_slice("live")
    shop.deploy("10")
    caught_up(control)
    plan = control.plan(control.stream_replay_request("live", WHY))
    control.stream_replay_step("live", steps.PLANNED, run_id=plan.run_id)
    assert control.stream_replay_run("live") == plan.run_id
    control.cancel(plan.run_id)
    assert control.stream_replay_run("live") is None, "it is planned anew, and nothing is read again"
    with _without(shop):
        with pytest.raises(Refused, match="no longer has the query"):
            control.stream_replay_slice("live", last=True)
        with pytest.raises(Drifted, match="no longer has what the replay has computed"):
            control.plan(control.stream_replay_request("live", WHY))
    with crash_at("full-replay.after-giving-up"), pytest.raises(SimulatedCrash):
        shop.control(DoomedWiring).stream_replay_giving_up("live")
    with pytest.raises(Refused, match="not what stream live ran with") as told:
        _live(shop)
    assert "deploy version 1.0.0" in told.value.hint
    there, _ = control.stream_replay_given_up("live", "2026-01-01T04:00:00")
    assert control.stream_replay_giving_up("live") == there, "the same command goes on"
    shop.deploy("1")
    _live(shop)
    control.stream_replay_end("live", given_up=True)
    with pytest.raises(StateConflict, match="no full replay"):
        control.stream_replay_slice("live")
    with pytest.raises(StateConflict, match="no full replay"):
        control.stream_replay_given_up("live", None)
    shop.send([10 + number / 6 for number in range(12)], 60)
    _live(shop)
    assert shop.hours() == _wanted(range(11), 1)


def test_a_log_that_has_lost_its_beginning_is_replayed_from_a_day_or_an_offset_on(shop: Shop) -> None:
    """Never from one that it lacks records of, nor from one before which windows are open."""
    starts = dict.fromkeys(range(2), 30)
    shop.broker.delete_records(shop.topic, starts)
    shop.deploy("10")
    refusals = {
        None: "no longer has its beginning",
        "2026-01-01T04:00:00": "no longer has what 2026-01-01 03:50 UTC and later needs",
        "2026-01-01T09:45:00": "still open",
        "2026-01-01T11:00:00": "no record of that day",
    }
    for start, why in refusals.items():
        control = shop.control()
        control.stream_replay("live", start)
        with pytest.raises(Refused, match=why):
            control.stream_replay_slice("live")
        control.stream_replay_end("live", given_up=True)
    refused = {
        (None, "0=20"): "no longer has 0=20..30",
        (None, "1=99"): "ends at offset 60, before 99",
        (None, "7=1"): "has no partition 7",
        ("2026-01-01T05:00:00", "0=30,1=30"): "may come of records before 0=30,1=30",
    }
    control = shop.control()
    for (start, offsets), why in refused.items():
        with pytest.raises(BackcastError, match=why):
            control.stream_replay("live", start, offsets)
    begun = control.stream_replay("live", None, "0=38,1=30")
    assert begun.start == "2026-01-01T07:00:00Z", "the first hour that needs no record before them"
    assert control.stream_replay("live", None, "0=38,1=30") == begun, "the same command goes on"
    for other in ("0=38", None):
        with pytest.raises(StateConflict, match="is not over") as told:
            control.stream_replay("live", None, other)
        assert "--from 2026-01-01T07:00:00Z --from-offsets 0=38,1=30" in told.value.hint
    control.stream_replay_slice("live")
    found = caught_up(control)
    assert found.first_day == "2026-01-01T07:00:00Z"
    assert control.world.replaying("live").full.catch_up().starts() == {0: 38, 1: 30}
    publish(control)
    control.stream_replay_swap("live")
    control.stream_replay_end("live")
    assert shop.hours() == _wanted(range(7), 1) | _wanted(range(7, 9), 10)
    shop.send([10 + number / 6 for number in range(12)], 60)
    _live(shop)
    assert shop.hours() == _wanted(range(7), 1) | _wanted(range(7, 11), 10)


@pytest.mark.parametrize("shop", [TableFormat.ICEBERG], indirect=True)
def test_the_command_replays_a_stream_that_runs_and_goes_on_behind_a_death(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Orders come before it, while the stream stands, and after."""
    monkeypatch.chdir(shop.root)
    for name, value in cheap(topics=True).items():
        monkeypatch.setenv(name, value)
    control, typed = shop.control(), ["stream", "replay", "live", "--yes"]
    with ThreadPoolExecutor(1) as pool, in_process(control):
        running = pool.submit(shop.control().stream_start, "live")
        wait_until(lambda: control.stream_status("live").state == "running", "the stream runs", 120)
        shop.deploy("10")
        shop.send([10 + number / 6 for number in range(12)], 60)
        with crash_at("plan.after-record"), pytest.raises(SimulatedCrash):
            dispatch(typed)
        assert running.result(120).state == "stopped"
        died(control, replay_lease("live"))
        shop.send([12 + number / 6 for number in range(12)], 72)
        capsys.readouterr()
        assert dispatch(typed) == 0, capsys.readouterr().err
    try:
        assert "goes on behind: stopped, caught-up" in capsys.readouterr().err
        wait_until(lambda: len(shop.hours()) == 13, "it reads on", 120)
        assert shop.hours() == _wanted(range(13), 10)
    finally:
        control.stream_stop("live", force=True)
