"""One database: connections, the two kinds of transaction, and the store's clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import URL, ColumnElement, Connection, Table, create_engine, exc, select

from backcast.errors import Unavailable
from backcast.model.document import Document
from backcast.store import dialect

BUSY_SECONDS = 30.0
"""How long a writer waits for another before it gives up."""


class Database:
    """Hands out transactions. Every failure of the database leaves here as `Unavailable`, never as a driver's error."""

    def __init__(self, url: URL, busy_seconds: float = BUSY_SECONDS) -> None:
        self.where = url.database or url.render_as_string(hide_password=True)
        self.engine = create_engine(url)
        dialect.attach(self.engine, busy_seconds)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent view that neither waits for writers nor stops them. Must not be used to write."""
        with self._transaction(dialect.READS) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """The only writer until it ends; everything inside happens, or nothing does."""
        with self._transaction(dialect.WRITES) as connection:
            yield connection

    @contextmanager
    def connect(self, transaction: str) -> Iterator[Connection]:
        """A connection whose transaction, if any, will begin as `dialect` names it. Errors are translated."""
        try:
            with self.engine.connect() as connection:
                yield connection.execution_options(**{dialect.TRANSACTION: transaction})
        except exc.DBAPIError as error:
            raise dialect.translate(error, self.where) from error
        except (ValidationError, json.JSONDecodeError) as error:
            raise Unavailable(
                f"the store {self.where} holds a damaged record",
                hint="restore it from a backup; the tables it describes were not touched",
                store=self.where,
                cause=type(error).__name__,
            ) from error

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[Connection]:
        with self.connect(kind) as connection, connection.begin():
            yield connection

    def close(self) -> None:
        """Give back all connections. A later transaction opens new ones."""
        self.engine.dispose()


def now(connection: Connection) -> datetime:
    """The moment by the store's clock."""
    return connection.execute(select(dialect.StoreNow())).scalar_one()


def fields(table: Table, document: type[Document]) -> list[ColumnElement[Any]]:
    """The table's columns that make up the document."""
    return [table.c[name] for name in document.model_fields]
