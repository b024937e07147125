"""One database: connections, the two kinds of transaction, and the store's clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Connection, Table, event, exc, select

from backcast.errors import Unavailable
from backcast.model.document import Document
from backcast.store.dialect import Dialect, StoreNow, Transaction

_TRANSACTION = "backcast_transaction"
"""Execution option of a connection: how its next transaction begins."""
_ACCOUNT = "backcast_account"
"""Execution option of a connection: on whose account this process works."""


class Database:
    """Hands out transactions. Every failure of the database leaves here as `Unavailable`, never as a driver's error."""

    def __init__(self, dialect: Dialect, account: str = "") -> None:
        self.where = dialect.where
        self._account = account
        self.engine = dialect.engine()
        self._dialect = dialect
        event.listen(self.engine, "begin", self._begun)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent view that neither waits for writers nor stops them. Must not be used to write."""
        with self._transaction(Transaction.READS) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """The only writer until it ends; everything inside happens, or nothing does."""
        with self._transaction(Transaction.WRITES) as connection:
            yield connection

    def prepare(self) -> None:
        """Once in a store's life, before its tables are made."""
        with self._connected(Transaction.NONE) as connection:
            self._dialect.prepare(connection)

    @contextmanager
    def _connected(self, kind: Transaction) -> Iterator[Connection]:
        try:
            with self.engine.connect() as connection:
                yield connection.execution_options(**{_TRANSACTION: kind, _ACCOUNT: self._account})
        except exc.DBAPIError as error:
            raise self._dialect.translate(error) from error
        except (ValidationError, json.JSONDecodeError) as error:
            raise Unavailable(
                f"the store {self.where} holds a damaged record",
                hint="restore it from a backup; the tables it describes were not touched",
                store=self.where,
                cause=type(error).__name__,
            ) from error

    @contextmanager
    def _transaction(self, kind: Transaction) -> Iterator[Connection]:
        with self._connected(kind) as connection, connection.begin():
            yield connection

    def _begun(self, connection: Connection) -> None:
        statements = self._dialect.begin(connection.get_execution_options()[_TRANSACTION])
        if statements:
            connection.exec_driver_sql(statements)

    def close(self) -> None:
        """Give back all connections. A later transaction opens new ones."""
        self.engine.dispose()


def now(connection: Connection) -> datetime:
    """The moment by the store's clock."""
    return connection.execute(select(StoreNow())).scalar_one()


def account(connection: Connection) -> str:
    """On whose account the process of this connection works; empty when it was not told."""
    return str(connection.get_execution_options().get(_ACCOUNT, ""))


def fields(table: Table, document: type[Document]) -> list[ColumnElement[Any]]:
    """The table's columns that make up the document."""
    return [table.c[name] for name in document.model_fields]
