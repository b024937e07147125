"""A process that stood still asks the store whether its lease is still to be had, and stops when it is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backcast.errors import LeaseHeld
from backcast.project.clock import SystemClock
from backcast.run.lease import HeldLease, acquire
from backcast.store import open_store
from backcast.store.sql import SqlStore
from backcast.testing.samples import sample_holder

NAME = "run:orders"


class StoppedClock(SystemClock):
    """Goes forward when it is told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with open_store(f"sqlite:///{tmp_path}/store.db") as opened:
        yield opened


def held(store: SqlStore, clock: StoppedClock) -> HeldLease:
    """Not entered: nothing renews it in the background."""
    return acquire(store.leases, NAME, sample_holder("first"), clock, lambda _: False, seconds=30)


def test_who_stood_still_goes_on_when_nobody_took_the_lease(store: SqlStore) -> None:
    clock = StoppedClock()
    lease = held(store, clock)
    token = lease.check().token
    clock.seconds += 25
    assert lease.check().token == token
    ended = store.leases.renew(lease.lease, 0).expires_at
    clock.seconds += 25
    assert lease.check().expires_at > ended
    assert lease.check().token == token


def test_who_stood_still_stops_when_another_took_it(store: SqlStore) -> None:
    clock = StoppedClock()
    lease = held(store, clock)
    store.leases.renew(lease.lease, 0)
    other = store.leases.acquire(NAME, sample_holder("second"), 60)
    assert lease.check(), "by its own clock it need not ask yet"
    clock.seconds += 25
    for _ in range(2):
        with pytest.raises(LeaseHeld, match="could not be renewed"):
            lease.check()
    store.leases.release(other)
    with pytest.raises(LeaseHeld):
        lease.check()
