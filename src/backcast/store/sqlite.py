"""A store in one SQLite file, on a local disk of one host."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc
from sqlalchemy.ext.compiler import compiles
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random

from backcast.errors import BackcastError, ConfigError, StateConflict, Unavailable
from backcast.store.dialect import StoreNow, Transaction, keep_from_children

if TYPE_CHECKING:
    from sqlalchemy.sql.compiler import SQLCompiler

_SWITCH_SECONDS = 30.0

_REMEDIES = (
    ("locked", "is held by another process", "wait for the other command to end and repeat this one"),
    ("disk is full", "cannot grow: the disk is full", "free space on that disk and repeat the command"),
    ("malformed", "is damaged", "restore it from a backup; the tables it describes were not touched"),
    ("not a database", "is not a Backcast store", "check `store` in backcast.yaml, or restore the file from a backup"),
    ("readonly", "cannot be written", "give this user write permission on the file and its folder"),
    ("unable to open", "cannot be opened", "check that the folder exists and that this user may read and write it"),
)


@compiles(StoreNow, "sqlite")
def _now(element: StoreNow, compiler: SQLCompiler, **_: Any) -> str:
    """SQLite's clock counts milliseconds."""
    return "CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000"


class Sqlite:
    """Implements `Dialect`. A writer takes the file's write lock when it begins, not at its first change."""

    def __init__(self, url: URL, busy_seconds: float) -> None:
        if not url.database or url.database == ":memory:" or url.query:
            hint = "write sqlite:///path/to/store.db"
            raise ConfigError("the store must be a file that outlives the process", hint=hint)
        self.where = url.database
        self._url = url
        self._busy_seconds = busy_seconds

    def reachable(self, *, create: bool) -> bool:
        """An empty file is a store that nobody finished making."""
        path = Path(self.where)
        try:
            if path.exists() and path.stat().st_size > 0:
                return True
            if create:
                path.parent.mkdir(parents=True, exist_ok=True)
            return create
        except OSError as error:
            raise Unavailable(
                f"the store {path} cannot be reached: {error.strerror}",
                hint="check that its folder exists and that this user may read and write it",
                store=self.where,
            ) from error

    def engine(self) -> Engine:
        engine = create_engine(self._url, hide_parameters=True)
        event.listen(engine, "connect", self._opened)
        keep_from_children(engine)
        return engine

    def begin(self, kind: Transaction) -> str:
        return {Transaction.READS: "BEGIN DEFERRED", Transaction.WRITES: "BEGIN IMMEDIATE"}.get(kind, "")

    def prepare(self, connection: Connection) -> None:
        """Let readers work beside a writer. The file remembers it."""
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
                f"the disk of the store {self.where} does not support a write-ahead log",
                hint="put the store on a local disk, never on a network share",
                store=self.where,
            )

    def translate(self, error: exc.DBAPIError) -> BackcastError:
        complaint = str(error.orig)
        if isinstance(error, exc.IntegrityError):
            return StateConflict(
                f"the store refused a record that contradicts what it holds: {complaint}",
                hint="look at the run with `backcast status`, then repeat the command",
            )
        for sign, meaning, remedy in _REMEDIES:
            if sign in complaint:
                return Unavailable(f"the store {self.where} {meaning}", hint=remedy, store=self.where, cause=complaint)
        return Unavailable(
            f"the store {self.where} failed: {complaint}",
            hint="check the disk that holds it with `backcast doctor`, then repeat the command",
            store=self.where,
            cause=complaint,
        )

    def _opened(self, connection: sqlite3.Connection, _record: Any) -> None:
        # The driver must never begin a transaction by itself: it would take the write lock too late.
        connection.isolation_level = None
        connection.execute(f"PRAGMA busy_timeout = {int(self._busy_seconds * 1000)}")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
