"""A live writer and a reader beside the product, and what they may see.

The writer notes a row once its commit was acknowledged; from then on no read may miss it. The reader takes the table at
every version it meets: in the scope it must see only the old rows or only the new ones, outside it nothing may change.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count, groupby
from types import TracebackType
from typing import Literal, Self

from tests.crash.lake import (
    NEW,
    OLD,
    OTHER_DAYS,
    OUTSIDE,
    SCOPE_DAYS,
    Lake,
    Row,
    Rows,
    in_scope,
    is_live,
    live_row,
)

View = Literal["old", "new"]
_JOIN_SECONDS = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE, _GROWTH = 0.3, 5.0, 1.2
_POLL = 0.05
_STRIKES = 10


def slowing() -> Iterator[float]:
    """Fast at first, slower as it goes on, so that a long life does not drown in live rows."""
    return (min(_FIRST_PAUSE * _GROWTH**turn, _LONGEST_PAUSE) for turn in count())


class Anomaly(AssertionError):
    """Something a user of the table must never see."""


class Witness:
    """Writer and reader as threads, and a second writer that strikes at the product's own boundaries.

    Use as a context manager; `verify` tells what they saw. `allowed_in_scope` says when the flow allows live rows in
    scope; outside it they arrive all the time. `pauses` are the seconds between two rows of the writing thread.
    """

    def __init__(self, lake: Lake, allowed_in_scope: Callable[[], bool], pauses: Iterator[float]) -> None:
        self.acknowledged: list[Row] = []
        self.views: dict[int, View] = {}
        """What the reader saw at each version it met."""
        self._lake = lake
        self._allowed_in_scope = allowed_in_scope
        self._pauses = pauses
        self._numbers = count(1)
        self._struck: set[str] = set()
        self._problems: list[BaseException] = []
        self._stop = threading.Event()
        self._writing = threading.Lock()
        self._threads = [threading.Thread(target=self._guard, args=(each,)) for each in (self._write, self._read)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)

    def strike(self, point: str) -> None:
        """A live row at the very moment the product passes a point, for the first few: in scope every other time.

        A second pass of the same point gets none, else nothing that starts over when the table moved would ever end.
        """
        if point not in self._struck and len(self._struck) < _STRIKES:
            self._struck.add(point)
            self.append(self._lake, scope=len(self._struck) % 2 == 0 and self._allowed_in_scope())

    def append(self, lake: Lake, *, scope: bool) -> Row:
        """One live row, now, from the calling thread."""
        with self._writing:
            number = next(self._numbers)
            days = SCOPE_DAYS if scope else OTHER_DAYS
            row = live_row(days[number // 2 % len(days)], number)
            lake.append(row)
            self.acknowledged.append(row)
        return row

    def verify(self, story: list[View] | None = None) -> None:
        """Raise what either thread met; then look at every version of main, also those the reader was too slow for.

        With a story, main's whole history must tell it: `["old", "new"]` is one publish and nothing else.
        """
        if any(thread.is_alive() for thread in self._threads):
            raise Anomaly("writer or reader hangs")
        if self._problems:
            raise self._problems[0]
        lake = self._lake
        told = [self.views.get(each) or judge(lake.rows(each), [], f"version {each}") for each in lake.versions()]
        judge(lake.rows(), self.acknowledged, "the table at the end")
        if story is not None and [view for view, _ in groupby(told)] != story:
            raise Anomaly(f"main's history tells {[view for view, _ in groupby(told)]}, not {story}")

    def expected(self, view: View) -> Rows:
        """The whole table, exactly."""
        return OUTSIDE + (OLD if view == "old" else NEW) + Counter(self.acknowledged)

    def _write(self) -> None:
        lake = self._lake.again()
        for turn, pause in enumerate(self._pauses):
            if self._stop.wait(pause):
                break
            self.append(lake, scope=turn % 2 == 1 and self._allowed_in_scope())
        lake.close()

    def _read(self) -> None:
        lake = self._lake.again()
        while not self._stop.wait(_POLL):
            known = list(self.acknowledged)
            head = lake.head()
            if head is not None and head not in self.views:
                self.views[head] = judge(lake.rows(head), known, f"a read of {head}")
        lake.close()

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test must fail with it
            self._problems.append(error)


def judge(rows: Rows, known: list[Row], what: str) -> View:
    """Which state the rows show. Raises Anomaly when it is neither, or when live rows are lost or doubled."""
    doubled = [row for row, times in rows.items() if is_live(row) and times > 1]
    lost = [row for row in known if row not in rows]
    if doubled or lost:
        raise Anomaly(f"{what}: live rows lost {lost}, doubled {doubled}")
    settled = Counter({row: times for row, times in rows.items() if not is_live(row)})
    scope = Counter({row: times for row, times in settled.items() if in_scope(row)})
    if settled - scope != OUTSIDE:
        raise Anomaly(f"{what}: rows outside the scope changed: {settled - scope}")
    if scope == OLD:
        return "old"
    if scope == NEW:
        return "new"
    raise Anomaly(f"{what}: the scope is neither old nor new: {scope}")
