"""Leases by the store's clock. A lease is one row; its token comes from a counter that never goes back."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, delete, or_, select, update

from backcast.errors import LeaseHeld, StateConflict
from backcast.model.live import stream_of
from backcast.model.run import Holder, Lease, lease_name, worker_lease_name
from backcast.store.dialect import StoreNow
from backcast.store.engine import Database, now
from backcast.store.schema import leases, streams, tokens

FENCING = "fencing"
_KEPT = timedelta(hours=1)


class SqlLeases:
    """Implements the port `Leases`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def acquire(self, name: str, holder: Holder, seconds: float) -> Lease:
        with self._database.write() as connection:
            held = current(connection, name)
            if held is not None:
                raise _held(name, held)
            return _grant(connection, name, holder, seconds)

    def renew(self, lease: Lease, seconds: float) -> Lease:
        """Also writes down the lease's holder, which may have learned about its JVM since.

        One that ended is had again while nobody took it: whoever acts on what it protects takes it first, or, where
        that is a worker's, deletes it.
        """
        with self._database.write() as connection:
            held = _find(connection, lease.name)
            if held is None or held.token != lease.token:
                raise _held(lease.name, held)
            renewed = lease.model_copy(update={"expires_at": now(connection) + timedelta(seconds=seconds)})
            connection.execute(update(leases).where(leases.c.name == lease.name).values(_row(renewed)))
            return renewed

    def release(self, lease: Lease) -> None:
        """Does nothing when the lease was lost: what another holds is not ours to give back."""
        with self._database.write() as connection:
            connection.execute(delete(leases).where(leases.c.name == lease.name, leases.c.token == lease.token))

    def take_over(self, lost: Lease, holder: Holder, seconds: float) -> Lease:
        with self._database.write() as connection:
            there = _find(connection, lost.name)
            if there is None or there.token != lost.token:
                raise _held(lost.name, there)
            return _grant(connection, lost.name, holder, seconds)

    def workers(self, run_id: str) -> list[Lease]:
        with self._database.write() as connection:
            at = now(connection)
            forget_workers(connection, run_id, at)
            return of_workers(connection, run_id, at)


def current(connection: Connection, name: str) -> Lease | None:
    """The lease of that name if it has not ended. A writer, being alone, can rely on it until its transaction ends."""
    return _find(connection, name, leases.c.expires_at > StoreNow())


def next_token(connection: Connection) -> int:
    """A number greater than every one before it, in this store, for ever."""
    query = update(tokens).where(tokens.c.name == FENCING).values(value=tokens.c.value + 1).returning(tokens.c.value)
    return int(connection.execute(query).scalar_one())


def require(connection: Connection, run_id: str, token: int, name: str = "") -> None:
    """Fence off everyone but the holder of the run's lease, or of that name's."""
    held = current(connection, name or lease_name(run_id))
    if held is None or held.token != token:
        raise StateConflict(
            f"the lease on {run_id} was lost: another process may be working on it",
            hint=f"see who with `backcast status {run_id}`; the same command continues once the run is free",
            run_id=run_id,
            token=token,
            **({} if held is None else {"lease": held}),
        )


def of_workers(connection: Connection, run_id: str, at: datetime | None = None) -> list[Lease]:
    """Leases of the run's workers that have not ended; by then, if that is given."""
    living = and_(_of_worker(run_id), leases.c.expires_at > (at or StoreNow()))
    rows = connection.execute(select(leases).where(living).order_by(leases.c.name))
    return [_lease(row) for row in rows.mappings()]


def forget_workers(connection: Connection, run_id: str, at: datetime) -> None:
    """Those whose leases had ended by then: nobody takes a worker's lease, so this is what keeps it from coming back.

    Whoever goes by a worker's end must call this in the transaction in which it finds that out.
    """
    connection.execute(delete(leases).where(_of_worker(run_id), leases.c.expires_at <= at))


def _of_worker(run_id: str) -> ColumnElement[bool]:
    first = worker_lease_name(run_id, "")
    return and_(leases.c.name >= first, leases.c.name <= f"{first}\U0010ffff")


def _find(connection: Connection, name: str, *further: ColumnElement[bool]) -> Lease | None:
    row = connection.execute(select(leases).where(leases.c.name == name, *further)).mappings().one_or_none()
    return None if row is None else _lease(row)


def _grant(connection: Connection, name: str, holder: Holder, seconds: float) -> Lease:
    expires_at = now(connection) + timedelta(seconds=seconds)
    lease = Lease(name=name, token=next_token(connection), holder=holder, expires_at=expires_at)
    # Workers have names of their own, so the leases of those that died are nobody's to replace.
    long_ended = leases.c.expires_at < now(connection) - _KEPT
    connection.execute(delete(leases).where(or_(leases.c.name == name, long_ended)))
    connection.execute(leases.insert().values(_row(lease)))
    stream = stream_of(name)
    if stream is not None:
        # It was asked of whoever held the lease before; what is asked from here on is meant for this one.
        connection.execute(update(streams).where(streams.c.name == stream).values(asked=""))
    return lease


def _row(lease: Lease) -> dict[str, Any]:
    return {
        "name": lease.name,
        "token": lease.token,
        "holder": lease.holder.canonical().decode(),
        "expires_at": lease.expires_at,
    }


def _lease(row: RowMapping) -> Lease:
    return Lease.model_validate({**row, "holder": Holder.model_validate_json(row["holder"])})


def _held(name: str, held: Lease | None) -> LeaseHeld:
    if held is None:
        return LeaseHeld(f"the lease {name} has ended", hint="repeat the command", name=name, lease=None)
    who = f"{held.holder.owner} ({held.holder.process})"
    return LeaseHeld(
        f"{who} holds the lease {name} until {held.expires_at:%Y-%m-%d %H:%M:%S} UTC",
        hint="wait for that command to end, or until its lease has ended, and repeat this one",
        name=name,
        lease=held,
    )
