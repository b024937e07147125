"""The world outside: a writer that appends to the table all along, and a reader that never stops looking."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from decimal import Decimal
from typing import ClassVar

from backcast.demo.lake import FIRST_LIVE_SHOP, TABLE, Lake, Row

_FIRST_DAY = date(2026, 2, 1)
_JOIN_SECONDS = 60.0


class Background:
    """A thread that repeats `step` until it is told to stop."""

    words: ClassVar[str]

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name=type(self).__name__, daemon=True)
        self.failure: Exception | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Wait until the step under way is done. Harmless when it never started."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_SECONDS)

    def step(self) -> None:
        raise NotImplementedError

    def _work(self) -> None:
        try:
            while not self._stop.wait(self._pause):
                self.step()
        except Exception as error:  # noqa: BLE001 - the story ends with it, on its own thread
            self.failure = error


class LiveWriter(Background):
    """Appends today's sales, one commit per row, as a stream would. Knows every row whose commit was confirmed."""

    words = "live writer"

    def __init__(self, lake: Lake) -> None:
        super().__init__(pause=0.8)
        self._spark = lake.spark.newSession()
        self.written: Counter[Row] = Counter()
        self._between = threading.Lock()

    def step(self) -> None:
        with self._between:
            number = self.written.total()
            self._append(_FIRST_DAY + timedelta(days=number // 10), FIRST_LIVE_SHOP + number)

    def append_late(self, day: date) -> None:
        """One row for a day of the past, now."""
        with self._between:
            self._append(day, FIRST_LIVE_SHOP + self.written.total())

    @contextmanager
    def between_commits(self) -> Iterator[Counter[Row]]:
        """No commit of the writer is under way inside: its rows are exactly these."""
        with self._between:
            yield self.written.copy()

    def _append(self, day: date, shop: int) -> None:
        self._spark.sql(f"INSERT INTO {TABLE} VALUES (DATE'{day}', {shop}, 'Online', 1, 9.90)")  # noqa: S608 - our own values
        self.written[(day, shop, "Online", 1, Decimal("9.90"))] += 1


_LOOK_SECONDS = 120.0


class Reader(Background):
    """Looks at the table again and again; each look must show January all wrong or all right, and no live row less."""

    words = "reader"

    def __init__(self, lake: Lake) -> None:
        super().__init__(pause=0.3)
        self._spark = lake.spark.newSession()
        self._states = {_summary(lake.wrong): "wrong", _summary(lake.right): "right"}
        self._live = 0
        self.looks = 0
        self.seen: list[str] = []
        """Each state once per change, in order: `wrong`, `right`, or `half-way`."""
        self.lost = 0

    def look_again(self) -> None:
        """Wait for a look that began just now: on a slow machine the last one may be older than what it should show."""
        wanted, deadline = self.looks + 2, time.monotonic() + _LOOK_SECONDS
        while self.looks < wanted and self.failure is None and time.monotonic() < deadline:
            time.sleep(0.1)

    def step(self) -> None:
        query = f"""SELECT count_if(shop < {FIRST_LIVE_SHOP}), sum(if(shop < {FIRST_LIVE_SHOP}, revenue, 0)),
            count_if(shop >= {FIRST_LIVE_SHOP}) FROM {TABLE}"""  # noqa: S608 - our own values
        january, revenue, live = self._spark.sql(query).collect()[0]
        state = self._states.get((january, revenue), "half-way")
        if self.seen[-1:] != [state]:
            self.seen.append(state)
        self.lost += max(0, self._live - live)
        self._live = live
        self.looks += 1


def _summary(january: Counter[Row]) -> tuple[int, Decimal]:
    revenue = sum((Decimal(str(row[4])) * times for row, times in january.items()), Decimal())
    return january.total(), revenue
