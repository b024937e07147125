"""Hold the right to work on a run, and know by one's own clock when it can no longer be trusted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from backcast.errors import BackcastError, LeaseHeld, OutcomeUnknown
from backcast.model.run import Holder, Lease
from backcast.ports import Clock, Leases, Store

LEASE_SECONDS = 30.0
_POLL_SECONDS = 0.5

EndHolder = Callable[[Holder], bool]
"""True when the holder's process is known to be gone and its JVM has been ended; False while it may still act."""


class HeldLease:
    """A lease renewed in the background. `check` raises before the lease can have ended by the store's clock.

    After an unknown outcome, or when this process is stopped from outside, it is not given back: the JVM may still be
    committing, and nobody may look at the table before it is known to be gone or the lease has ended.
    """

    def __init__(
        self, leases: Leases, lease: Lease, clock: Clock, asked_at: float, seconds: float = LEASE_SECONDS
    ) -> None:
        self._leases = leases
        self._clock = clock
        self._seconds = seconds
        self._lease = lease
        self._safe_until = asked_at + seconds * 0.8
        self._lost = False
        self._asking = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew, name=f"lease {lease.name}", daemon=True)

    @property
    def lease(self) -> Lease:
        return self._lease

    def check(self) -> Lease:
        """The lease, if it is certainly still ours. Call before every side effect.

        Who stood still for too long asks the store: while nobody else took the lease, it can be had again.
        """
        if not self._safe and not self._renewed():
            raise LeaseHeld(
                f"the lease on {self._lease.name} could not be renewed in time, so this process stops",
                hint="run the same command again: it continues where this one stopped",
            )
        return self._lease

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=self._seconds)
        if kind is None or (issubclass(kind, Exception) and not issubclass(kind, OutcomeUnknown)):
            # A store that is away now must not hide how the work ended: the lease ends by itself.
            with suppress(BackcastError):
                self._leases.release(self._lease)

    @property
    def _safe(self) -> bool:
        return self._clock.monotonic() < self._safe_until

    def _renew(self) -> None:
        pause = self._seconds / 5
        while not self._stop.wait(pause):
            pause = self._seconds / (5 if self._renewed() else 30)

    def _renewed(self) -> bool:
        """Ask the store once. False when the lease is lost, or the store does not answer."""
        with self._asking:
            if self._lost:
                return False
            asked = self._clock.monotonic()
            try:
                self._lease = self._leases.renew(self._lease, self._seconds)
            except LeaseHeld:
                self._lost, self._safe_until = True, float("-inf")
                return False
            except BackcastError:
                return False
            self._safe_until = asked + self._seconds * 0.8
            # An answer that took as long as the lease lasts is no right to anything.
            return self._safe


def living_workers(store: Store, run_id: str, ended: EndHolder) -> list[Lease]:
    """Leases of the run's workers that live, or may: who is not among them can write under its lease no more."""
    workers = store.leases.workers(run_id)
    gone = [each for each in workers if ended(each.holder)]
    for each in gone:
        store.leases.release(each)
    return [each for each in workers if each not in gone]


def acquire(
    leases: Leases,
    name: str,
    holder: Holder,
    clock: Clock,
    ended: EndHolder,
    wait: float = 0.0,
    seconds: float = LEASE_SECONDS,
) -> HeldLease:
    """Take the lease, or take it over from a process that is known to be gone.

    Raises LeaseHeld when its holder lives, and still does after so many seconds.
    """
    deadline = clock.monotonic() + wait
    while True:
        try:
            return _taken(leases, name, holder, clock, ended, seconds)
        except LeaseHeld:
            if clock.monotonic() >= deadline:
                raise
            clock.sleep(_POLL_SECONDS)


def see_off(leases: Leases, name: str, holder: Holder, clock: Clock, ended: EndHolder) -> None:
    """Nobody holds the lease, and who held it last cannot have it again. Raises LeaseHeld while its holder lives.

    For whoever goes by the end of a lease without needing it: one that has merely ended could come back.
    """
    with acquire(leases, name, holder, clock, ended):
        pass


def _taken(leases: Leases, name: str, holder: Holder, clock: Clock, ended: EndHolder, seconds: float) -> HeldLease:
    asked = clock.monotonic()
    try:
        lease = leases.acquire(name, holder, seconds)
    except LeaseHeld as error:
        held = error.attributes.get("lease")
        if not isinstance(held, Lease) or not ended(held.holder):
            raise
        asked = clock.monotonic()
        lease = leases.take_over(held, holder, seconds)
    return HeldLease(leases, lease, clock, asked, seconds)
