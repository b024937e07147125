"""Unit tests need no Spark: one that starts it leaves the tests after it a session without connectors."""

from __future__ import annotations

import pytest

from backcast.project.wiring import Wiring


@pytest.fixture(autouse=True)
def _without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Wiring) -> None:
        raise AssertionError("a unit test starts Spark")

    monkeypatch.setattr(Wiring, "spark", refused)
