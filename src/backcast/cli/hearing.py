"""What a command and its child take for a request to stop: which signals, and how many of them are one request."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence

_ONE_STOP_SECONDS = 2.0


def stops() -> tuple[int, ...]:
    """Signals that mean the same as SIGTERM. Whoever started us under `nohup` wants us to survive the terminal."""
    hangs_up = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return (signal.SIGTERM, signal.SIGHUP) if hangs_up else (signal.SIGTERM,)


class Stops:
    """Counts how often it was asked to stop.

    One request arrives several times: a service manager signals every process of a service, a shell and the system
    both tell of a terminal that closed, and a command passes on to its child what the child has got already.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = float("-inf")
        self.heard = 0

    def hear(self) -> bool:
        """Whether this is a request of its own."""
        now = self._clock()
        if now - self._last < _ONE_STOP_SECONDS:
            return False
        self._last = now
        self.heard += 1
        return True


class Terminals:
    """Those that a command writes to, as they were when it began."""

    def __init__(self, descriptors: Sequence[int] = (1, 2)) -> None:
        self._there = [each for each in descriptors if os.isatty(each)]

    def let_go(self) -> None:
        """Write to nowhere instead of to those that are closed: each line there would be an error."""
        for each in self._there:
            if not os.isatty(each):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, each)
                os.close(nowhere)
