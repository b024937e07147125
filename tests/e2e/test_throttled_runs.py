"""What a throttle does to a real run: it rests for what a job wrote or read, and waits for a stream that is behind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest

from backcast.control import ControlPlane
from backcast.model.live import Stop, StreamStatus
from backcast.model.report import Progress
from backcast.model.states import RunState
from backcast.project.clock import SystemClock
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.testing.faults import at_point
from backcast.testing.kafka_topics import wait_until
from backcast.testing.orders import FIRST, Order, Orders, spread
from tests.e2e.test_stream import caught_up

SENT = list(spread(2, 10))
_RECORDS = [(4, 2), (1, 6), (1, 1)]
"""Of each day in each partition. The job of a day writes half of them."""


class Still(SystemClock):
    """Work takes no time, and who sleeps is awake at once, and later: however slow the machine is."""

    slept = 0.0

    def monotonic(self) -> float:
        return self.slept

    def sleep(self, seconds: float) -> None:
        self.slept += seconds


def throttled(orders: Orders, throttle: str) -> ControlPlane:
    """Each day is a job."""
    orders.configure(pipeline=f"chunks_per_job: 1\nthrottle: {throttle}")
    return ControlPlane(Wiring(load_project(orders.root), Still()))


@pytest.mark.parametrize(
    ("throttle", "rests"),
    [
        pytest.param("{rows_per_second: 1}", {1: "rests 3 s", 2: "rests 4 s"}, id="rows"),
        pytest.param("{per_partition: 1}", {1: "rests 4 s", 2: "rests 6 s"}, id="partition"),
    ],
)
def test_a_run_rests_behind_a_job_for_the_rows_that_it_wrote_or_for_its_busiest_partition(
    new_orders: Callable[..., Orders], throttle: str, rests: dict[int, str]
) -> None:
    orders = new_orders(partitions=2)
    number = 0
    for day, counts in enumerate(_RECORDS):
        for partition, count in enumerate(counts):
            noon = FIRST + timedelta(days=day, hours=12)
            orders.send([Order(number + each, noon) for each in range(count)], partition)
            number += count
    control = throttled(orders, throttle)
    sql = orders.root / "models" / "orders.sql"
    sql.write_text(f"{sql.read_text()}WHERE id % 2 = 0\n")
    said: dict[int, str] = {}

    def on_progress(progress: Progress) -> None:
        if progress.message.startswith("rests "):
            said.setdefault(progress.done, progress.message)

    with closing(control.world):
        plan = control.plan(orders.request("2026-01-01", "2026-01-04"))
        assert control.run(plan.run_id, on_progress=on_progress).state is RunState.ACCEPTED
    assert said == rests


def test_no_job_begins_while_a_declared_stream_is_behind_and_the_run_goes_on_once_it_has_caught_up(
    new_orders: Callable[..., Orders],
) -> None:
    orders = new_orders(partitions=1)
    control = throttled(orders, "{live_lag: 5}")
    orders.send(SENT[:10])
    caught_up(orders)
    orders.send(SENT[10:])
    hangs, released, over = threading.Event(), threading.Event(), threading.Event()
    said: list[str] = []

    def hold() -> None:
        hangs.set()
        released.wait(60)

    def stream() -> StreamStatus:
        with closing(orders.open().world) as world:
            return ControlPlane(world).stream_start("live", asked=lambda: Stop.BOUNDARY if over.is_set() else None)

    def on_progress(progress: Progress) -> None:
        said.append(progress.message)
        if progress.message.startswith("waits: "):
            assert not control.world.reader().stage_records(plan.run_id)
            released.set()
            wait_until(lambda: control.stream_status("live").batches[0].landed, "the stream has caught up", 60)

    with closing(control.world), at_point("stream.before-commit", hold), ThreadPoolExecutor(1) as pool:
        started = pool.submit(stream)
        try:
            assert hangs.wait(60)
            plan = control.plan(orders.request("2026-01-01", "2026-01-02"))
            assert control.run(plan.run_id, on_progress=on_progress).state is RunState.ACCEPTED
            assert control.stream_status("live").state == "running", (
                "it was not the end of the stream that was waited for"
            )
        finally:
            released.set()
            over.set()
        assert started.result(60).state == "stopped"
    assert [each for each in said if each.startswith("waits: ")] == ["waits: stream live is 10 records behind"]
