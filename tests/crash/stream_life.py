"""The life of a live stream across many processes, each of which is killed."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from backcast.control import ControlPlane
from backcast.errors import BackcastError
from backcast.model.live import StreamStatus
from backcast.spark import processes
from backcast.spark.processes import ProcessIdentity
from backcast.testing.faults import KILLS
from backcast.testing.kafka_topics import wait_until
from backcast.testing.orders import FIRST, Order, Orders
from tests.cheap import cheap
from tests.crash.process import Lost, SparkProcess
from tests.crash.witness import Anomaly

_JOB: dict[str, Any] = {"name": "live", "accept_checkpoint": False}
_WAIT = 180.0
_SLOW = """\
SELECT id, shop, at, amount, to_date(at) AS day FROM orders
WHERE CASE WHEN shop LIKE 'slow %'
      THEN coalesce(reflect('java.lang.Thread', 'sleep', CAST(substr(shop, 6) AS BIGINT)), '') <> 'x' ELSE true END
"""


def endless() -> Iterator[Order]:
    """Orders of many days, so that a batch writes several files."""
    number = 0
    while True:
        yield Order(number, FIRST + timedelta(hours=number * 5 % 720), f"{1 + number % 7}.50", f"S{number % 3}")
        number += 1


@dataclass
class StreamLife:
    """A project with a stream `live`, everything that was sent to its topic, and the JVMs that kills left behind."""

    orders: Orders
    source: Iterator[Order] = field(default_factory=endless)
    sent: list[Order] = field(default_factory=list)
    orphans: list[ProcessIdentity] = field(default_factory=list)

    def send(self, number: int) -> None:
        new = [next(self.source) for _ in range(number)]
        self.orders.send(new)
        self.sent += new

    def status(self) -> StreamStatus:
        with closing(self.orders.open().world) as world:
            return ControlPlane(world).stream_status("live")

    def die_at(self, fault: str) -> None:
        """One process that is killed at that point."""
        with self._process(fault) as process:
            process.send("stream-start", **_JOB, once=True)
            self._lost(process, jvm_only=fault.endswith(":jvm"))

    def die_at_random(self, dice: random.Random, kill: str, seconds: float) -> None:
        """One process that is killed some time after it began to run, while records arrive."""
        with self._process() as process:
            self.start(process)
            until = time.monotonic() + dice.uniform(0, seconds)
            while time.monotonic() < until:
                self.send(dice.randint(1, 20))
                time.sleep(dice.uniform(0, 0.2))
            self.kill(process, kill)

    def catch_up(self) -> StreamStatus:
        """With nobody in its way, in this process and its session."""
        with closing(self.orders.open().world) as world:
            return ControlPlane(world).stream_start(**_JOB, once=True)

    def write_slowly(self) -> None:
        """From now on the batch that meets an order of shop `slow 500` takes so many milliseconds more."""
        (self.orders.root / "models" / "orders.sql").write_text(_SLOW)

    def write_at_once(self) -> None:
        (self.orders.root / "models" / "orders.sql").write_text(_SLOW.partition("WHERE")[0])

    @contextmanager
    def process(self) -> Iterator[SparkProcess]:
        """One that may be given several jobs, one after the other."""
        with self._process() as process:
            yield process

    def start(self, process: SparkProcess) -> None:
        process.send("stream-start", **_JOB, once=False)
        wait_until(lambda: self.status().state == "running", "the stream runs", _WAIT)

    def enter_batch(self, seconds: float) -> None:
        """Returns in the middle of a batch that takes so long."""
        wait_until(self.has_read_all, "the stream has read everything", _WAIT)
        slow = replace(next(self.source), shop=f"slow {int(seconds * 1000)}")
        self.orders.send([slow])
        self.sent.append(slow)
        wait_until(self.in_batch, "a batch is under way", _WAIT)

    def in_batch(self) -> bool:
        batches = self.status().batches
        return bool(batches) and not batches[0].landed

    def stop(self, **how: Any) -> StreamStatus:
        """As somebody else asks for it."""
        with closing(self.orders.open().world) as world:
            return ControlPlane(world).stream_stop("live", **how)

    def kill(self, process: SparkProcess, kill: str) -> None:
        """At this very moment."""
        jvm = self._jvm()
        if kill in ("jvm", "both") and jvm is not None:
            os.kill(jvm.pid, signal.SIGKILL)
        if kill in ("python", "both"):
            process.process.kill()
        self._lost(process, jvm_only=kill == "jvm")

    def has_read_all(self) -> bool:
        newest = next((each for each in self.status().batches if each.landed), None)
        return newest is not None and sum(each.end for each in newest.offsets) == len(self.sent)

    def check(self) -> None:
        """Every record that was sent is in the table, once."""
        wanted = Counter((each.id, f"{each.at:%Y-%m-%d}", each.amount) for each in self.sent)
        found = self.orders.rows()
        if found != wanted:
            raise Anomaly(f"lost {sorted(wanted - found)[:5]}, too many {sorted(found - wanted)[:5]}")

    def close(self) -> None:
        for orphan in self.orphans:
            with suppress(ProcessLookupError):
                processes.end(orphan)

    def _process(self, fault: str = "") -> SparkProcess:
        return SparkProcess(self.orders.root, fault, cheap(self.orders.format, topics=True))

    def _jvm(self) -> ProcessIdentity | None:
        lease = self.status().lease
        if lease is None or lease.holder.jvm_pid is None or lease.holder.jvm_started is None:
            return None
        found = ProcessIdentity(lease.holder.jvm_pid, lease.holder.jvm_started)
        self.orphans.append(found)
        return found

    def _lost(self, process: SparkProcess, *, jvm_only: bool) -> None:
        """It must end as a kill does: no answer, or one that says that it goes on."""
        try:
            answer = process.answer()
        except Lost:
            self._jvm()
            return
        except BackcastError as error:
            self._jvm()
            if not jvm_only or error.exit_code not in (5, 6):
                raise Anomaly(f"the kill ended in {error!r}") from error
            return
        raise Anomaly(f"nothing was killed: {answer}")


def kills(dice: random.Random) -> Iterator[str]:
    """What is killed, over and over, in no order."""
    while True:
        yield dice.choice(KILLS)
