"""The stream of a soak: somebody starts it again and again, and it is killed again and again."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from backcast.control import ControlPlane
from backcast.errors import BackcastError
from backcast.faults import STREAM_POINTS
from backcast.model.live import StreamStatus
from backcast.spark import processes
from backcast.spark.processes import ProcessIdentity
from backcast.testing.faults import KILLS
from backcast.testing.kafka_topics import wait_until
from backcast.testing.orders import Orders
from tests.cheap import cheap
from tests.crash.process import Bug, Lost, SparkProcess
from tests.crash.witness import Anomaly

_JOB = {"name": "live", "accept_checkpoint": False}
_PATIENCE = 1800.0


def status_of(orders: Orders) -> StreamStatus:
    with closing(orders.open().world) as world:
        return ControlPlane(world).stream_status("live", batches=20)


def landed(orders: Orders) -> dict[int, int]:
    """The next offset of each partition behind the newest batch that is on record as landed."""
    batch = next((each for each in status_of(orders).batches if each.landed), None)
    return {} if batch is None else {each.partition: each.end for each in batch.offsets}


def await_jvm(process: SparkProcess) -> bool:
    """Whether it got one, and lives."""
    while process.process.poll() is None:
        if process.jvm() is not None:
            return True
        time.sleep(0.2)
    return False


class Keeper(threading.Thread):
    """Starts the stream whenever it does not run, and sees to it that it dies."""

    def __init__(self, orders: Orders, seed: int) -> None:
        super().__init__(name="keeper", daemon=True)
        self._orders, self._dice = orders, random.Random(seed)  # noqa: S311 - kills, not secrets
        self._stop_asked, self._held = threading.Event(), threading.Event()
        self._living = threading.Lock()
        self._process: SparkProcess | None = None
        self.lives, self.kills = 0, 0
        self.orphans: list[ProcessIdentity] = []
        self.error: Exception | None = None

    def run(self) -> None:
        while not self._stop_asked.is_set():
            if self._held.wait(0.1):
                continue
            with self._living:
                try:
                    self._live()
                except Exception as error:  # noqa: BLE001 - whoever watches says what it was
                    self.error = error
                    return

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside, the stream is somebody else's."""
        self._held.set()
        while not self._living.acquire(timeout=5):
            self._end()
        try:
            yield
        finally:
            self._held.clear()
            self._living.release()

    def stop(self) -> None:
        self._stop_asked.set()
        until = time.monotonic() + _PATIENCE
        while self.is_alive() and time.monotonic() < until:
            self._end()
            self.join(5)

    def catch_up(self) -> None:
        """With nobody in its way."""
        with SparkProcess(self._orders.root, "", cheap(self._orders.format, topics=True)) as process:
            process.call("stream-start", **_JOB, once=True)

    def close(self) -> None:
        for orphan in self.orphans:
            with suppress(ProcessLookupError):
                processes.end(orphan)

    def _end(self) -> None:
        """Ask for a good end of the life that is under way."""
        process = self._process
        if process is not None and process.process.poll() is None:
            process.process.terminate()

    def _live(self) -> None:
        kill, point = self._dice.choice(KILLS), ""
        if self._dice.random() < 0.5:
            point = f"{self._dice.choice(STREAM_POINTS)}#{self._dice.randint(1, 5)}:{kill}"
        print(f"stream: {point or 'at random:' + kill}", flush=True)
        struck = threading.Event()
        with SparkProcess(self._orders.root, point, cheap(self._orders.format, topics=True)) as process:
            self._process = process
            timer = threading.Timer(0.0, self._strike, (process, kill, struck))
            if not point and self._dice.random() < 0.2:
                timer.interval = self._dice.uniform(0, 15)
                timer.start()

            def heard(message: str) -> None:
                if not point and not timer.is_alive() and not struck.is_set():
                    timer.interval = self._dice.uniform(0, 20)
                    with suppress(RuntimeError):
                        timer.start()

            self.lives += 1
            try:
                process.send("stream-start", **_JOB, once=False)
                process.answer(heard)
            except Lost as error:
                self._judge(kill in ("python", "both") and bool(point or struck.is_set()), error)
            except Bug as error:
                # Asked to stop while it starts, it has not begun to listen.
                self._judge(False, error)
            except BackcastError as error:
                self._judge(error.exit_code in (5, 6) and kill != "python" and bool(point or struck.is_set()), error)
            else:
                if not self._stop_asked.is_set() and not self._held.is_set():
                    raise Anomaly("the stream ended, and nobody asked it to")
            finally:
                timer.cancel()
                self._process = None
                self._remember()

    def _judge(self, expected: bool, error: Exception) -> None:
        if not expected and not (self._stop_asked.is_set() or self._held.is_set()):
            raise Anomaly(f"the stream ended in {error!r}") from error
        self.kills += expected

    def _strike(self, process: SparkProcess, kill: str, struck: threading.Event) -> None:
        if await_jvm(process):
            struck.set()
            jvm = process.strike(kill)
            if jvm is not None:
                self.orphans.append(jvm)

    def _remember(self) -> None:
        """The JVM of a process that died."""
        lease = status_of(self._orders).lease
        if lease is not None and lease.holder.jvm_pid is not None and lease.holder.jvm_started is not None:
            self.orphans.append(ProcessIdentity(lease.holder.jvm_pid, lease.holder.jvm_started))


def wait_for_stream(orders: Orders, until: dict[int, int], what: str) -> None:
    """Until it has landed everything before these offsets."""
    wait_until(lambda: all(landed(orders).get(key, 0) >= end for key, end in until.items()), what, _PATIENCE)
