"""Commands that change something about a stream that somebody else runs: plain PySpark, on a checkpoint of its own."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from backcast.cli.dispatch import dispatch
from backcast.control import ControlPlane
from backcast.demo.shell import in_process
from backcast.errors import Refused
from backcast.model.live import backfill_lease
from backcast.model.pipeline import TableFormat
from backcast.model.recovery import Recovered, Recovery, Way
from backcast.model.states import RunState
from backcast.model.stream_backfill import RESUMED, VERIFIED, StreamBackfill, unfinished
from backcast.streams.checkpoint.backup import read_manifest
from backcast.streams.checkpoint.exchange import Exchange
from backcast.testing.faults import SimulatedCrash, at_point, crash_at
from backcast.testing.orders import Order, Orders, rows_of, spread
from tests.died import died
from tests.e2e.test_checkpoint import declare, stream

_ALL = ("2026-01-01", "2026-02-01")
_PAUSE = ("stream", "backfill", "live", "--from", "2026-01-01", "--to", "2026-01-03", "--pause", "--yes")
_PER_BATCH = 5


@dataclass(frozen=True, slots=True)
class Typed:
    """Commands in the project, for machines."""

    orders: Orders
    control: ControlPlane
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> tuple[int, str]:
        with in_process(self.control):
            code = dispatch([*words, "--json"])
        return code, self.capsys.readouterr().out


@pytest.fixture
def sent() -> list[Order]:
    return list(spread(2, 15))


def test_a_backfill_waits_until_others_have_stopped_their_stream_and_what_that_has_still_to_read_is_left_to_it(
    new_orders: Callable[..., Orders],
    sent: list[Order],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It dies at every step, and somebody starts the stream too early: no row is lost, and none is there twice."""
    orders = new_orders(partitions=1)
    declare(orders, external=True, source="to_end: true")
    monkeypatch.chdir(orders.root)
    checkpoint = orders.root / "checkpoint"
    orders.send(sent[::3])
    stream(orders, checkpoint, _PER_BATCH)
    orders.send(sent[1::3])
    orders.spark.sql(f"DELETE FROM {orders.table} WHERE id = 3")
    control = orders.open()
    with closing(control.world):
        typed = Typed(orders, control, capsys)
        code, told = typed(*_PAUSE)
        assert (code, "make sure that it is, and add --stopped" in told) == (4, True), told
        _behind_a_batch_that_was_cut_off(checkpoint, typed)
        _killed(typed, "before-stopped", "before-backed-up", "before-planned")

        with at_point("validate.after-verdict", lambda: stream(orders, checkpoint, _PER_BATCH)):
            code, told = typed(*_PAUSE, "--stopped")
        assert code == 3, told
        assert "was stopped behind batch 1, and its checkpoint has batch 3 now" in told
        (run,) = [each for each in control.list() if each.state is RunState.ACCEPTED]
        assert f"stop it again, then backcast cancel {run.run_id}, then the same command: it plans anew" in told
        control.cancel(run.run_id)
        assert 3 not in {row[0] for row in orders.rows()}, "nothing was published"
        orders.send(sent[2::3])
        _killed(typed, "before-published", "before-verified")

        code, told = typed(*_PAUSE)
        done = StreamBackfill.model_validate_json(told)
        assert (code, done.steps[-1], done.batch) == (0, VERIFIED, 3)
        assert read_manifest(Path(done.backup or "")).batch == 3
        assert [each.state for each in control.list()].count(RunState.PUBLISHED) == 1
        assert orders.rows() == rows_of([*sent[::3], *sent[1::3]], *_ALL)
        stream(orders, checkpoint, _PER_BATCH)
        code, told = typed(*_PAUSE)
        assert (code, StreamBackfill.model_validate_json(told).steps[-1]) == (0, RESUMED)
        assert unfinished(control.world.stream_reader().steps("live")) is None
    assert orders.rows() == rows_of(sent, *_ALL)


def _behind_a_batch_that_was_cut_off(checkpoint: Path, typed: Typed) -> None:
    """Whether its rows are in the table, the files do not tell."""
    over, kept = checkpoint / "commits" / "1", checkpoint / "kept"
    over.rename(kept)
    code, told = typed(*_PAUSE, "--stopped")
    assert (code, "batch 1 of stream live was begun and is not over" in told) == (3, True), told
    kept.rename(over)


def _killed(typed: Typed, *points: str) -> None:
    for name in points:
        # Backups are named by the second.
        time.sleep(1)
        with crash_at(f"backfill.{name}"), pytest.raises(SimulatedCrash):
            pytest.fail(str(typed(*_PAUSE, "--stopped")))
        died(typed.control, backfill_lease("live"))


@pytest.mark.parametrize("table_format", TableFormat)
def test_a_stream_of_others_gets_a_checkpoint_at_the_offset_that_its_sink_its_checkpoint_or_its_rows_prove(
    new_orders: Callable[..., Orders],
    table_format: TableFormat,
    sent: list[Order],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    orders = new_orders(partitions=1, table_format=table_format)
    orders.spark.sql(f"ALTER TABLE {orders.table} ADD COLUMNS (partition INT, offset BIGINT)")
    declare(orders, external=True)
    monkeypatch.chdir(orders.root)
    checkpoint = orders.root / "checkpoint"

    def read() -> None:
        stream(orders, checkpoint, _PER_BATCH, "partition", "offset")

    orders.send(sent[:10])
    read()
    control = orders.open()
    with closing(control.world):
        typed = Typed(orders, control, capsys)
        _what_proves_nothing_is_refused(control, orders, checkpoint)
        code, told = typed("stream", "recover", "live", "--yes")
        assert (code, "add --stopped" in told) == (4, True), told
        code, told = typed("stream", "recover", "live", "--yes", "--stopped")
        done = Recovered.model_validate_json(told)
        assert (code, done.stream, done.found.way, done.found.starting) == (0, None, Way.FRESH, {0: 10})
        assert done.found.by.startswith("batch 1 is committed by its checkpoint")
        assert list(orders.root.glob("checkpoint.before-recover-*")), "what was there is kept"
        assert control.stream_recovery("live").way is Way.START, "repeated, it finds that all is done"
    orders.send(sent[10:20])
    read()
    assert orders.rows() == rows_of(sent[:20], *_ALL)

    shutil.rmtree(checkpoint)
    with closing(orders.open().world) as world, pytest.raises(Refused, match="has no committed batch") as refused:
        ControlPlane(world).stream_recovery("live")
    assert "declare `position` of datasets.orders_by_day" in refused.value.hint
    config, model = orders.root / "backcast.yaml", orders.root / "models" / "orders.sql"
    position = "    position: {partition: partition, offset: offset}"
    config.write_text(config.read_text().replace("[id]\n", f"[id]\n{position}\n"))
    model.write_text(model.read_text().replace(" FROM", ", _kafka.partition, _kafka.offset FROM"))
    control = orders.open()
    with closing(control.world):
        typed = Typed(orders, control, capsys)
        code, told = typed("stream", "recover", "live", "--look")
        looked = Recovery.model_validate_json(told)
        assert (code, looked.by, looked.starting) == (0, "no row carries a later offset", {0: 20}), told
        with monkeypatch.context() as patch:
            patch.setattr(Exchange, "exchange", _exchanged_and_died)
            with pytest.raises(SimulatedCrash):
                control.stream_recover("live", looked, stopped=True)
        code, told = typed("stream", "recover", "live", "--yes", "--stopped")
        again = Recovered.model_validate_json(told).found
        assert (code, again.way, again.by.partition(",")[0]) == (0, Way.START, "its checkpoint was made by a recovery")
    orders.send(sent[20:])
    read()
    assert orders.rows() == rows_of(sent, *_ALL)


_exchange = Exchange.exchange


def _exchanged_and_died(self: Exchange, action: str, now: datetime) -> None:
    _exchange(self, action, now)
    raise SimulatedCrash("killed behind the exchange")


def _what_proves_nothing_is_refused(control: ControlPlane, orders: Orders, checkpoint: Path) -> None:
    """Leaves a checkpoint behind that has lost the id of its query."""
    over, kept = checkpoint / "commits" / "1", checkpoint / "kept"
    over.rename(kept)
    found = control.stream_recovery("live")
    assert (found.way, found.proven, found.batch) == (Way.START, {0: 10}, 1), "its sink skips what comes again"
    assert found.by.startswith(f"batch 1 is in the history of {orders.table}, ")
    (checkpoint / "metadata").unlink()
    with pytest.raises(Refused, match="batch 1 was begun, and neither its checkpoint nor the table says"):
        control.stream_recovery("live")
    kept.rename(over)
    (checkpoint / "state" / "0" / "0").mkdir(parents=True)
    (checkpoint / "state" / "0" / "0" / "2.delta").touch()
    with pytest.raises(Refused, match="keeps state, which a fresh checkpoint does not have"):
        control.stream_recover("live", control.stream_recovery("live"), stopped=True)
    shutil.rmtree(checkpoint / "state")
