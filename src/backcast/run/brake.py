"""Waits between the jobs of a run, as its throttle asks: for a pace, for its hours, for live streams far behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING

from backcast.model.hours import Hours
from backcast.model.throttle import Behind, Work
from backcast.model.words import many

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
    """The port Pace of one process. It asks for its throttle again and again: people change it meanwhile."""

    throttle: Callable[[], Throttle]
    behind: Callable[[str], Behind | None]
    """How far a stream is behind now; None for one that nobody runs, and where nothing is known."""
    clock: Clock
    still: Callable[[], object]
    """Raises when this process may not go on."""
    say: Callable[[str], object]
    commits: Callable[[], Sequence[datetime]] = tuple
    """When jobs committed in the last hour, newest first."""
    _done: tuple[Work, float] | None = None
    """The job before, and when it ended, until somebody has rested for it."""
    _hopeless: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    """Where streams of others stood that were waited for in vain."""

    def in_force(self) -> Throttle:
        return self.throttle()

    def after_a_job(self, work: Work) -> None:
        self._done = (work, self.clock.monotonic())

    def rest(self) -> None:
        done, self._done = self._done, None
        if done is None:
            return
        work, ended = done
        while (left := ended + self.throttle().rest(work) - self.clock.monotonic()) > 0:
            self.say(f"rests {ceil(left):,} s")
            self._sleep(min(left, POLL_SECONDS))

    def before_a_job(self) -> None:
        self.rest()
        patience: float | None = None
        while True:
            throttle = self.throttle()
            closed = self._closed(throttle)
            if closed is not None:
                self.say(closed)
                self._sleep(POLL_SECONDS)
                patience = None
                continue
            late = self._late(throttle)
            if late is None:
                return
            name, behind = late
            patience = self.clock.monotonic() + LONGEST_SECONDS if patience is None else patience
            left = patience - self.clock.monotonic()
            if left <= 0:
                if not behind.known_to_run:
                    self._hopeless[name] = behind.position
                return
            note = f" ({behind.note})" if behind.note else ""
            self.say(f"waits: stream {name} is {behind.records:,} records behind{note}")
            self._sleep(min(left, LOOK_SECONDS))

    def _closed(self, throttle: Throttle) -> str | None:
        """Until when no job may begin, and why."""
        if throttle.hours is not None:
            opens = Hours.parse(throttle.hours).next(self.clock.now())
            if opens is not None:
                return f"rests until {_moment(opens)}: jobs begin at {throttle.hours} only"
        most = throttle.commits_per_hour
        commits = () if most is None else self.commits()
        if most is None or len(commits) < most:
            return None
        return f"rests until {_moment(commits[most - 1] + timedelta(hours=1))}: {many(most, 'commit')} in an hour"

    def _late(self, throttle: Throttle) -> tuple[str, Behind] | None:
        """The first stream that is too far behind. One that nobody runs catches up by no waiting."""
        if throttle.live_lag is None:
            return None
        for name in throttle.streams:
            behind = self.behind(name)
            if behind is None or behind.records <= throttle.live_lag:
                continue
            if self._hopeless.get(name) != behind.position:
                return name, behind
        return None

    def _sleep(self, seconds: float) -> None:
        moment = self.clock.monotonic() + seconds
        while (left := moment - self.clock.monotonic()) > 0:
            self.still()
            self.clock.sleep(min(left, POLL_SECONDS))


def _moment(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M} UTC"
