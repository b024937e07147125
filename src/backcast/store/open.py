"""Opens a store: makes it when asked to, brings it up to date, refuses what it cannot understand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.errors import ConfigError, Unavailable

if TYPE_CHECKING:
    from backcast.store.dialect import Dialect
    from backcast.store.sql import SqlStore


BUSY_SECONDS = 30.0
"""How long a writer waits for another before it gives up."""

_HINT = "write sqlite:///path/to/store.db or postgresql://user@host/database"


def open_store(url: str, *, create: bool = True, busy_seconds: float = BUSY_SECONDS, account: str = "") -> SqlStore:
    """The store at `sqlite:///path` or `postgresql://user@host/database`, made when it is not there yet.

    Without `create`, a store that is not there is `Unavailable` and is not made. Every event that is written through it
    names the account.
    """
    dialect = dialect_of(url, busy_seconds)
    store = _open(dialect, create=create, account=account)
    if store is None:
        raise Unavailable(
            f"there is no store at {dialect.where}: nothing was planned here yet",
            hint="make the first plan with `backcast plan PIPELINE --from DAY --to DAY`",
            store=dialect.where,
        )
    return store


def find_store(url: str, *, busy_seconds: float = BUSY_SECONDS) -> SqlStore | None:
    """The store if it is there. Makes nothing."""
    return _open(dialect_of(url, busy_seconds), create=False)


def place_of(url: str) -> str:
    """The store as messages name it: without user, password and options. Raises ConfigError."""
    return dialect_of(url).where


def _open(dialect: Dialect, *, create: bool, account: str = "") -> SqlStore | None:
    from backcast.store import migrate
    from backcast.store.engine import Database
    from backcast.store.sql import SqlStore

    if not dialect.reachable(create=create):
        return None
    database = Database(dialect, account)
    try:
        if migrate.ensure_current(database, create=create):
            return SqlStore(database)
    except BaseException:
        database.close()
        raise
    database.close()
    return None


def dialect_of(url: str, busy_seconds: float = BUSY_SECONDS) -> Dialect:
    """The database behind an address. Raises ConfigError, which never repeats the address."""
    from sqlalchemy import exc, make_url

    from backcast.store.postgresql import Postgresql
    from backcast.store.sqlite import Sqlite

    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError):
        # Without its cause, which repeats the address.
        raise ConfigError("the store's address is not a URL", hint=_HINT) from None
    match parsed.drivername:
        case "sqlite":
            return Sqlite(parsed, busy_seconds)
        case "postgresql":
            return Postgresql(parsed, busy_seconds)
        case other:
            raise ConfigError(f"a store of kind {other!r} is not supported", hint=_HINT)
