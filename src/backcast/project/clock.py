"""The clock of this machine."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """Time as the operating system tells it; the only place of the product that asks."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
