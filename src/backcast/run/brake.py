"""Waits between the jobs of a run, as its throttle asks: for a pace, and for live streams that have fallen behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING

from backcast.model.throttle import Behind, Work

if TYPE_CHECKING:
    from backcast.model.throttle import Throttle
    from backcast.ports import Clock

POLL_SECONDS = 1.0
LOOK_SECONDS = 5.0
"""While it waits for a stream, it asks how far that is so often: each look is a question to the brokers."""
LONGEST_SECONDS = 600.0
"""After so long one job is done all the same: a stream that never catches up must not keep a run for ever."""


@dataclass(slots=True)
class Brake:
    """The port Pace of one process."""

    throttle: Throttle
    behind: Callable[[str], Behind | None]
    """How far a stream is behind now; None for one that nobody runs, and where nothing is known."""
    clock: Clock
    still: Callable[[], object]
    """Raises when this process may not go on."""
    say: Callable[[str], object]
    _rested_at: float | None = None
    """When the rest for the job before is over."""
    _hopeless: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """Where streams of others stood that were waited for in vain."""

    def after_a_job(self, work: Work) -> None:
        self._rested_at = self.clock.monotonic() + self.throttle.rest(work)

    def rest(self) -> None:
        until, self._rested_at = self._rested_at, None
        while until is not None and (left := until - self.clock.monotonic()) > 0:
            self.say(f"rests {ceil(left):,} s")
            self._sleep_until(self.clock.monotonic() + min(left, POLL_SECONDS))

    def before_a_job(self) -> None:
        self.rest()
        until = self.clock.monotonic() + LONGEST_SECONDS
        while (late := self._late()) is not None and (left := until - self.clock.monotonic()) > 0:
            name, behind = late
            note = f" ({behind.note})" if behind.note else ""
            self.say(f"waits: stream {name} is {behind.records:,} records behind{note}")
            self._sleep_until(self.clock.monotonic() + min(left, LOOK_SECONDS))
        if late is not None and not late[1].known_to_run:
            self._hopeless[late[0]] = late[1].position

    def _late(self) -> tuple[str, Behind] | None:
        """The first stream that is too far behind. One that nobody runs catches up by no waiting."""
        if self.throttle.live_lag is None:
            return None
        for name in self.throttle.streams:
            behind = self.behind(name)
            if behind is None or behind.records <= self.throttle.live_lag:
                continue
            if self._hopeless.get(name) != behind.position:
                return name, behind
        return None

    def _sleep_until(self, moment: float) -> None:
        while (left := moment - self.clock.monotonic()) > 0:
            self.still()
            self.clock.sleep(min(left, POLL_SECONDS))
