"""Commits of one run queue: whoever wants to commit to its stage waits for a turn.

Jobs of several workers compute side by side. If they committed side by side too, they would lose races against each
other, and together they would crowd out the live writer of a table whose stage shares its metadata.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from backcast.errors import LeaseHeld
from backcast.model.run import turn_lease_name
from backcast.ports import Rest
from backcast.run.job import RunJob
from backcast.run.lease import HeldLease, acquire

_POLL_SECONDS = 0.2


@contextmanager
def turn(job: RunJob) -> Iterator[Rest]:
    """The right to commit, as long as the right to work on the run lasts. A dead process's turn is taken from it."""
    with _next(job):
        job.lease.check()
        yield lambda seconds: _rest(job, seconds)


def _rest(job: RunJob, seconds: float) -> None:
    until = job.clock.monotonic() + seconds
    while (left := until - job.clock.monotonic()) > 0:
        job.lease.check()
        job.clock.sleep(min(left, _POLL_SECONDS))


def _next(job: RunJob) -> HeldLease:
    name = turn_lease_name(job.run.run_id)
    while True:
        try:
            return acquire(job.store.leases, name, job.lease.check().holder, job.clock, job.ended)
        except LeaseHeld:
            job.lease.check()
            job.clock.sleep(_POLL_SECONDS)
