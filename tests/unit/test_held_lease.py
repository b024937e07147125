"""A process that stood still asks the store whether its lease is still to be had, and stops when it is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from backcast.errors import LeaseHeld
from backcast.model.live import stream_lease
from backcast.model.run import Lease
from backcast.project.clock import SystemClock
from backcast.run.lease import HeldLease, acquire, see_off
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


class SlowLeases:
    """A store whose answer comes when the lease that it grants has ended."""

    def __init__(self, store: SqlStore, clock: StoppedClock) -> None:
        self._leases, self._clock = store.leases, clock

    def renew(self, lease: Lease, seconds: float) -> Lease:
        renewed = self._leases.renew(lease, seconds)
        self._clock.seconds += seconds + 10
        return renewed


def held(store: SqlStore, clock: StoppedClock, name: str = NAME) -> HeldLease:
    """Not entered: nothing renews it in the background."""
    return acquire(store.leases, name, sample_holder("first"), clock, lambda _: False, seconds=30)


@pytest.mark.parametrize("name", [NAME, stream_lease("live")])
def test_who_stood_still_goes_on_when_nobody_took_the_lease(store: SqlStore, name: str) -> None:
    clock = StoppedClock()
    lease = held(store, clock, name)
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


def test_an_answer_that_comes_too_late_is_no_lease(store: SqlStore) -> None:
    clock = StoppedClock()
    lease = held(store, clock)
    lease._leases = SlowLeases(store, clock)  # type: ignore[assignment]  # only renews
    clock.seconds += 25
    with pytest.raises(LeaseHeld, match="could not be renewed"):
        lease.check()


def test_who_was_seen_off_does_not_have_its_ended_lease_again(store: SqlStore) -> None:
    clock, me = StoppedClock(), sample_holder("second")
    lease = held(store, clock)
    with pytest.raises(LeaseHeld, match="first"):
        see_off(store.leases, NAME, me, clock, lambda _: False)
    store.leases.renew(lease.lease, 0)
    see_off(store.leases, NAME, me, clock, lambda _: False)
    clock.seconds += 25
    with pytest.raises(LeaseHeld, match="could not be renewed"):
        lease.check()
