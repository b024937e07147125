"""The world around the topic: tills that send orders all along, and the stream that writes them into the table."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from backcast.cli import detached
from backcast.demo.live import Background
from backcast.demo.narrator import ClaimBroken, Narrator
from backcast.demo.orders import SHOPS, Order
from backcast.demo.shell import expect
from backcast.demo.topic import STREAM, TOPIC, OrdersTopic
from backcast.project.api import open_project
from backcast.testing.kafka_records import write

if TYPE_CHECKING:
    from backcast.model.live import StreamStatus

_PATIENCE = 600.0
_POLL_SECONDS = 0.2


class Tills(Background):
    """Send an order of each shop, over and over. Know every order that the broker has confirmed."""

    words = "tills"

    def __init__(self, orders: OrdersTopic, first: int) -> None:
        from confluent_kafka import Producer

        super().__init__(pause=0.5)
        # Without idempotence an order that is sent again could be in the topic twice.
        settings = {"bootstrap.servers": orders.broker.servers, "enable.idempotence": True, "log_level": 0}
        self._producer = Producer(settings)
        self._next = first
        self.sent: list[Order] = []

    def open(self) -> None:
        """Start, and wait for the first orders."""
        self.start()
        while not self.sent and self.failure is None:
            time.sleep(_POLL_SECONDS)

    def step(self) -> None:
        now = datetime.now(UTC).replace(microsecond=0)
        batch = [Order.of(self._next + number, now) for number in range(len(SHOPS))]
        write(self._producer, TOPIC, (each.record() for each in batch))
        self._next += len(batch)
        self.sent.extend(batch)


class Stream:
    """The stream of the project, started and stopped by the real commands: a process with a Spark of its own."""

    def __init__(self, orders: OrdersTopic, narrator: Narrator) -> None:
        self._orders = orders
        self._narrator = narrator

    def start(self) -> None:
        """Go on where the checkpoint says, or from the beginning of the topic."""
        expect(self._narrator, 0, "stream", "start", STREAM, "--detach")

    def stop(self) -> None:
        expect(self._narrator, 0, "stream", "stop", STREAM)

    def status(self) -> StreamStatus:
        """What the store knows; the process itself is not asked."""
        control = open_project(self._orders.root)
        try:
            return control.stream_status(STREAM)
        finally:
            control.world.close()

    def catch_up(self) -> None:
        """Wait until each record that is in the topic now is written. Raises ClaimBroken when the stream ended."""
        wanted, deadline = self._orders.broker.end_offsets(TOPIC), time.monotonic() + _PATIENCE
        while any(ends_of(found := self.status()).get(key, 0) < end for key, end in wanted.items()):
            if not found.alive or time.monotonic() > deadline:
                raise ClaimBroken(f"the stream goes on: it is {found.state}: {found.live and found.live.detail}")
            time.sleep(_POLL_SECONDS)

    def end(self) -> None:
        """However the story ended: nothing of the stream is left running."""
        control, deadline = open_project(self._orders.root), time.monotonic() + _PATIENCE
        try:
            # A process that is still starting listens to nobody yet.
            while detached.is_working(self._orders.root, detached.stream_work(STREAM)) and time.monotonic() < deadline:
                control.stream_stop(STREAM, force=True)
                time.sleep(_POLL_SECONDS)
        finally:
            control.world.close()


def ends_of(status: StreamStatus) -> dict[int, int]:
    """The next offset of each partition behind the newest batch that landed."""
    landed = next((each for each in status.batches if each.landed), None)
    return {} if landed is None else {each.partition: each.end for each in landed.offsets}
