"""Unit tests need no Spark: one that starts it leaves the tests after it a session without connectors."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from backcast.project.wiring import Wiring


@pytest.fixture(autouse=True)
def _without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Wiring) -> None:
        raise AssertionError("a unit test starts Spark")

    monkeypatch.setattr(Wiring, "spark", refused)


@pytest.fixture(autouse=True, scope="session")
def _hang_ups() -> Iterator[None]:
    """Are what they are at a terminal, also where the tests are started to survive theirs, as under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
