"""Leases are measured by the store's clock: what a worker's own clock says changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from backcast.errors import LeaseHeld
from backcast.model.run import Lease
from backcast.store import open_store
from backcast.testing.samples import sample_holder
from backcast.testing.store_workers import race


def try_to_get(url: str, name: str, ahead: timedelta) -> Lease | None:
    """What a process gets whose own clock is that much ahead."""
    with time_machine.travel(datetime.now(UTC) + ahead), open_store(url) as store:
        try:
            return store.leases.acquire(name, sample_holder("astray"), 60)
        except LeaseHeld:
            return None


@pytest.mark.parametrize("ahead", [timedelta(days=400), timedelta(days=-400)], ids=["ahead", "behind"])
def test_a_worker_whose_own_clock_is_wrong_changes_nothing(either_url: str, ahead: timedelta) -> None:
    with open_store(either_url) as store:
        held = store.leases.acquire("table:held", sample_holder("first"), 60)
        store.leases.acquire("table:ended", sample_holder("first"), 0)
        assert race(try_to_get, either_url, "table:held", ahead, processes=1) == [None]
        assert store.runs.holder("table:held") == held
        (taken,) = race(try_to_get, either_url, "table:ended", ahead, processes=1)
        assert store.runs.holder("table:ended") == taken
        assert timedelta(0) <= taken.expires_at - held.expires_at < timedelta(seconds=60)
        assert store.leases.renew(taken, 60).expires_at >= taken.expires_at
