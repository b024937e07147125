"""Everything that differs between databases: the clock, how a transaction begins, what an error means.

PostgreSQL adds a second `@compiles`, a second branch in `attach` and its own error texts here; nothing else changes.
Row locks are written as `FOR UPDATE` where they matter, which SQLite leaves out because its writers are alone anyway.
"""

from __future__ import annotations

import os
import sqlite3
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Connection, Engine, event, exc
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random

from backcast.errors import BackcastError, StateConflict, Unavailable

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import Dialect
    from sqlalchemy.sql.compiler import SQLCompiler

TRANSACTION = "backcast_transaction"
"""Execution option of a connection: how its next transaction begins."""

READS, WRITES, NO_TRANSACTION = "DEFERRED", "IMMEDIATE", ""

_SWITCH_SECONDS = 30.0

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Instant(TypeDecorator[datetime]):
    """A moment as microseconds since 1970 in UTC: it sorts, compares and survives every database alike."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        return None if value is None else (value - _EPOCH) // timedelta(microseconds=1)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return None if value is None else _EPOCH + timedelta(microseconds=value)


class StoreNow(FunctionElement[datetime]):
    """The moment by the store's clock when the statement runs, not when its transaction began."""

    type = Instant()
    inherit_cache = True


@compiles(StoreNow, "sqlite")
def _sqlite_now(element: StoreNow, compiler: SQLCompiler, **_: Any) -> str:
    """SQLite's clock counts milliseconds."""
    return "CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000"


def attach(engine: Engine, busy_seconds: float) -> None:
    """Make every connection of the engine durable, patient, strict about references, and safe to inherit by a fork."""

    def opened(connection: sqlite3.Connection, record: Any) -> None:
        # The driver must never begin a transaction by itself: it would take the write lock too late.
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {int(busy_seconds * 1000)}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        record.info["pid"] = os.getpid()

    def taken(_connection: Any, record: Any, _proxy: Any) -> None:
        if record.info["pid"] != os.getpid():
            record.dbapi_connection = None
            raise exc.DisconnectionError("this connection belongs to the parent process")

    def begun(connection: Connection) -> None:
        kind = connection.get_execution_options()[TRANSACTION]
        if kind != NO_TRANSACTION:
            connection.exec_driver_sql(f"BEGIN {kind}")

    event.listen(engine, "connect", opened)
    event.listen(engine, "checkout", taken)
    event.listen(engine, "begin", begun)


def share_file(connection: Connection, where: str) -> None:
    """Let readers work beside a writer. The file remembers it, so this is done once in a store's life."""
    # While two processes switch at the same time SQLite fails at once instead of waiting.
    for attempt in Retrying(
        retry=retry_if_exception_type(exc.OperationalError),
        stop=stop_after_delay(_SWITCH_SECONDS),
        wait=wait_random(0.01, 0.1),
        reraise=True,
    ):
        with attempt:
            mode = connection.exec_driver_sql("PRAGMA journal_mode = WAL").scalar_one()
    if mode != "wal":
        raise Unavailable(
            f"the disk of the store {where} does not support a write-ahead log",
            hint="put the store on a local disk, never on a network share",
            store=where,
        )


_REMEDIES = (
    ("locked", "is held by another process", "wait for the other command to end and repeat this one"),
    ("disk is full", "cannot grow: the disk is full", "free space on that disk and repeat the command"),
    ("malformed", "is damaged", "restore it from a backup; the tables it describes were not touched"),
    ("not a database", "is not a Backcast store", "check `store` in backcast.yaml, or restore the file from a backup"),
    ("readonly", "cannot be written", "give this user write permission on the file and its folder"),
    ("unable to open", "cannot be opened", "check that the folder exists and that this user may read and write it"),
)


def translate(error: exc.DBAPIError, where: str) -> BackcastError:
    """The database's complaint as an error that says what to do. Must not repeat the statement or its values."""
    complaint = str(error.orig)
    if isinstance(error, exc.IntegrityError):
        return StateConflict(
            f"the store refused a record that contradicts what it holds: {complaint}",
            hint="look at the run with `backcast status`, then repeat the command",
        )
    for sign, meaning, remedy in _REMEDIES:
        if sign in complaint:
            return Unavailable(f"the store {where} {meaning}", hint=remedy, store=where, cause=complaint)
    return Unavailable(
        f"the store {where} failed: {complaint}",
        hint="check the disk that holds it with `backcast doctor`, then repeat the command",
        store=where,
        cause=complaint,
    )
