"""`stream backfill --pause` while orders keep arriving, killed behind and in front of every one of its records.

The command is the real one, in this process; so is the stream, which the command starts in a thread instead of in a
process of its own: what a process's death does to a stream is tried by test_stream_kills.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from backcast.cli import stream_steps
from backcast.cli.dispatch import dispatch
from backcast.control import ControlPlane
from backcast.demo.shell import in_process
from backcast.errors import Refused
from backcast.faults import BACKFILL_POINTS
from backcast.model.live import StreamStatus, backfill_lease, stream_lease
from backcast.model.pipeline import TableFormat
from backcast.model.recovery import Way
from backcast.model.states import RunState
from backcast.model.stream_backfill import unfinished
from backcast.testing.faults import SimulatedCrash, crash_at
from backcast.testing.kafka_topics import wait_until
from backcast.testing.orders import Order, Orders, rows_of, spread
from tests.died import died

_WINDOW = ("--from", "2026-01-01", "--to", "2026-01-03")
_EVERYTHING = ("2026-01-01", "2026-02-01")
_WAIT = 120.0


class Shop:
    """Orders of two days that keep arriving, and the stream that reads them."""

    def __init__(self, orders: Orders) -> None:
        self._orders, self._over = orders, Event()
        self._pool = ThreadPoolExecutor(2)
        self._stream: Future[StreamStatus] | None = None
        self.sent: list[Order] = []
        self.starts = 0

    def open(self) -> None:
        self._selling = self._pool.submit(self._sell)

    def close(self) -> None:
        """The last order is sent and read."""
        self._over.set()
        self._selling.result(_WAIT)
        wait_until(self._all_read, "the stream has read everything", _WAIT)
        self.end()

    def end(self) -> None:
        self._over.set()
        with closing(self._orders.open().world) as world:
            ControlPlane(world).stream_stop("live")
        if self._stream is not None:
            self._stream.result(_WAIT)
        self._pool.shutdown()

    def start_stream(self, *_: Any) -> StreamStatus:
        """In place of a process of its own."""
        if self._stream is not None:
            self._stream.result(_WAIT)
        self.starts += 1
        self._stream = self._pool.submit(self._run)
        wait_until(lambda: self.status().state == "running", "the stream runs", _WAIT)
        return self.status()

    def status(self) -> StreamStatus:
        with closing(self._orders.open().world) as world:
            return ControlPlane(world).stream_status("live")

    def _run(self) -> StreamStatus:
        with closing(self._orders.open().world) as world:
            return ControlPlane(world).stream_start("live")

    def _sell(self) -> None:
        for number, each in enumerate(spread(2, 5_000)):
            if self._over.wait(0.2):
                return
            new = replace(each, id=number)
            self._orders.send([new])
            self.sent.append(new)

    def has_read(self) -> bool:
        """Something: the first batch of all may find an empty topic."""
        return self._read() > 0

    def _all_read(self) -> bool:
        return self._read() == len(self.sent)

    def _read(self) -> int:
        newest = next((each for each in self.status().batches if each.landed), None)
        return 0 if newest is None else sum(each.end for each in newest.offsets)


@contextmanager
def twice(orders: Orders) -> Iterator[None]:
    """Inside, somebody has added a row a second time."""
    again = f"SELECT id, 'twice' AS shop, at, amount, day FROM {orders.table} WHERE day = '2026-01-01' LIMIT 1"
    orders.spark.sql(f"INSERT INTO {orders.table} {again}")
    yield
    orders.spark.sql(f"DELETE FROM {orders.table} WHERE shop = 'twice'")


@pytest.mark.parametrize("table_format", list(TableFormat))
def test_a_paused_backfill_that_dies_at_every_step_loses_and_doubles_nothing(
    new_orders: Callable[..., Orders],
    table_format: TableFormat,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And while readers see what they should not, its stream stays stopped."""
    orders = new_orders(table_format=table_format)
    orders.configure(source="to_end: true")
    monkeypatch.chdir(orders.root)
    shop = Shop(orders)
    monkeypatch.setattr(stream_steps, "started_in_background", shop.start_stream)
    control = orders.open()

    def typed() -> int:
        return dispatch(["stream", "backfill", "live", *_WINDOW, "--pause", "--yes", "--reason", "again"])

    try:
        shop.open()
        shop.start_stream()
        wait_until(shop.has_read, "a batch with orders landed", _WAIT)
        with closing(control.world), in_process(control):
            *before, after = BACKFILL_POINTS
            for point in before:
                if point.endswith("verified"):
                    with twice(orders):
                        assert typed() == Refused.exit_code
                    told = capsys.readouterr().err
                    assert "is published, and a look at the table failed: key unique: 1 key more than once" in told
                    assert "takes it back; stream live stays stopped meanwhile; the same command goes on" in told
                    assert not shop.status().alive
                begun = shop.status().under_way
                if begun is not None and begun.stands:
                    with pytest.raises(Refused, match="a backfill of 2026-01-01 to 2026-01-03 has stopped stream live"):
                        control.refuse_start("live")
                    assert control.stream_recovery("live").way is Way.START, "it may have to be recovered meanwhile"
                for fault in (point, after):
                    if point.endswith("backed-up"):
                        # Backups are named by the second.
                        time.sleep(1)
                    with crash_at(fault), pytest.raises(SimulatedCrash, match=fault):
                        typed()
                    died(control, backfill_lease("live"))
                    if point.endswith("stopped"):
                        # Nobody starts the stream while that is put on record.
                        died(control, stream_lease("live"))
                assert shop.status().alive == (point in before[-2:]), f"{point}: paused until all is published"
            assert shop.starts == 2
            assert unfinished(control.world.stream_reader().steps("live")) is None
            (published,) = [each for each in control.list() if each.state is RunState.PUBLISHED]
            assert published.reason == "again"
            shop.close()
        assert orders.rows() == rows_of(shop.sent, *_EVERYTHING)
    finally:
        shop.end()
