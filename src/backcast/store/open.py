"""Opens a store: makes it when asked to, brings it up to date, refuses what it cannot understand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backcast.errors import ConfigError, Unavailable

if TYPE_CHECKING:
    from sqlalchemy import URL

    from backcast.store.sql import SqlStore


def open_store(url: str, *, create: bool = True, busy_seconds: float | None = None) -> SqlStore:
    """The store at `sqlite:///path`. Without `create`, a store that is not there is `Unavailable` and is not made."""
    from backcast.store import migrate
    from backcast.store.engine import BUSY_SECONDS, Database
    from backcast.store.sql import SqlStore

    database_url = _parse(url)
    _prepare(Path(str(database_url.database)), create=create)
    database = Database(database_url, BUSY_SECONDS if busy_seconds is None else busy_seconds)
    try:
        migrate.ensure_current(database)
    except BaseException:
        database.close()
        raise
    return SqlStore(database)


def _parse(url: str) -> URL:
    from sqlalchemy import exc, make_url

    try:
        parsed = make_url(url)
    except exc.ArgumentError as error:
        raise ConfigError("the store's address is not a URL", hint="write sqlite:///path/to/store.db") from error
    if parsed.drivername != "sqlite":
        raise ConfigError(
            f"a store of kind {parsed.drivername!r} is not supported", hint="write sqlite:///path/to/store.db"
        )
    if not parsed.database or parsed.database == ":memory:" or parsed.query:
        raise ConfigError("the store must be a file that outlives the process", hint="write sqlite:///path/to/store.db")
    return parsed


def _prepare(path: Path, *, create: bool) -> None:
    """An empty file is a store that nobody finished making."""
    try:
        if path.exists() and path.stat().st_size > 0:
            return
        if create:
            path.parent.mkdir(parents=True, exist_ok=True)
            return
    except OSError as error:
        raise Unavailable(
            f"the store {path} cannot be reached: {error.strerror}",
            hint="check that its folder exists and that this user may read and write it",
            store=str(path),
        ) from error
    raise Unavailable(
        f"there is no store at {path}: nothing was planned here yet",
        hint="make the first plan with `backcast plan PIPELINE --from DAY --to DAY`",
        store=str(path),
    )
