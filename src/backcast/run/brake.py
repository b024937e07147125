"""Waits between the jobs of a run, as its throttle asks: for a pace, and for live streams that have fallen behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backcast.model.live import stream_lease

if TYPE_CHECKING:
    from backcast.model.run import Lease
    from backcast.model.throttle import Throttle
    from backcast.ports import Clock
    from backcast.ports.streams import StreamReader
    from backcast.run.lease import EndHolder

POLL_SECONDS = 1.0
LONGEST_SECONDS = 600.0
"""After so long one job is done all the same: a stream that never catches up must not keep a run for ever."""


@dataclass(frozen=True, slots=True)
class Brake:
    """One process of one run."""

    throttle: Throttle
    streams: StreamReader
    holder: Callable[[str], Lease | None]
    ended: EndHolder
    clock: Clock
    still: Callable[[], object]
    """Raises when this process may not go on."""
    say: Callable[[str], object]

    def before_a_job(self) -> None:
        """Until no stream is too far behind."""
        until = self.clock.monotonic() + LONGEST_SECONDS
        while (behind := self._behind()) is not None and self.clock.monotonic() < until:
            name, lag = behind
            self.say(f"waits: stream {name} is {lag:,} records behind")
            self._sleep(POLL_SECONDS)

    def after_a_job(self, rows: int, seconds: float) -> None:
        """As long as the pace asks for."""
        until = self.clock.monotonic() + self.throttle.rest(rows, seconds)
        while (left := until - self.clock.monotonic()) > 0:
            self.say(f"rests {left:,.0f} s")
            self._sleep(min(left, POLL_SECONDS))

    def _behind(self) -> tuple[str, int] | None:
        """The first stream that is too far behind. One that nobody runs catches up by no waiting."""
        if self.throttle.live_lag is None:
            return None
        for name in self.throttle.streams:
            lease = self.holder(stream_lease(name))
            if lease is None or self.ended(lease.holder):
                continue
            newest = self.streams.batches(name, 1)
            if newest and newest[0].lag > self.throttle.live_lag:
                return name, newest[0].lag
        return None

    def _sleep(self, seconds: float) -> None:
        self.still()
        self.clock.sleep(seconds)
