"""Brings a store to the schema that this code works with. Loads Alembic only when there is something to do."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection, column, inspect, select, table

from backcast.errors import Unavailable
from backcast.store.engine import Database
from backcast.store.schema import REVISIONS, VERSION_TABLE


def ensure_current(database: Database, *, create: bool) -> bool:
    """Upgrade the store when it is behind. False when there is none and none is to be made.

    Raises Unavailable when it is ahead of this code or not a store at all.
    """
    with database.read() as connection:
        found = recorded(connection)
        if found == REVISIONS[-1]:
            return True
        if not create and found is None and not inspect(connection).get_table_names():
            return False
    database.prepare()
    with database.write() as connection:
        # Asked again as the only writer: another process may have been faster.
        found = recorded(connection)
        if found != REVISIONS[-1]:
            _refuse_strangers(connection, found, database.where)
            upgrade(connection)
    return True


def recorded(connection: Connection) -> str | None:
    """The revision that the store says it has; None when it says nothing."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.execute(select(table(VERSION_TABLE, column("version_num")))).scalar_one_or_none()


def scripts() -> Path:
    """Where the migrations are."""
    return Path(__file__).parent / "migrations"


def _refuse_strangers(connection: Connection, found: str | None, where: str) -> None:
    if found is not None and found not in REVISIONS:
        raise Unavailable(
            f"the store {where} was written by a newer Backcast (schema {found}, this one knows {REVISIONS[-1]})",
            hint="upgrade Backcast on this machine to the version that the others use",
            store=where,
        )
    if found is None and inspect(connection).get_table_names():
        raise Unavailable(
            f"{where} is a database, but not a Backcast store",
            hint="check `store` in backcast.yaml: it needs a file, or a schema of a database, of its own",
            store=where,
        )


def upgrade(connection: Connection, revision: str = REVISIONS[-1]) -> None:
    """Apply the steps up to this revision inside the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
