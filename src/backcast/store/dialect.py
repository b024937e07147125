"""What the store asks of its database that databases do differently; `sqlite` and `postgresql` answer it.

Nothing else in this package knows which database it talks to. Every database gives the store one writer at a time, so
that no code outside the two answers needs a row lock or a retry.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol

from sqlalchemy import BigInteger, Connection, Engine, Text, event, exc
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator

from backcast.errors import BackcastError
from backcast.model.document import canonical
from backcast.model.run import InputCount

if TYPE_CHECKING:
    from sqlalchemy.engine import interfaces

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Transaction(Enum):
    """How a connection's next transaction begins."""

    READS = auto()
    """A consistent view; neither waits for a writer nor stops one."""
    WRITES = auto()
    """The store's only writer, after waiting its turn."""
    NONE = auto()
    """Each statement by itself."""


class Dialect(Protocol):
    """One database's answers, for one store."""

    where: str
    """The store as messages name it. Never holds a user or a password."""

    def reachable(self, *, create: bool) -> bool:
        """Whether a connection would find something; with `create`, make what it needs first. Raises Unavailable."""

    def engine(self) -> Engine:
        """Durable, patient connections that begin no transaction by themselves."""

    def begin(self, kind: Transaction) -> str:
        """The statements that begin a transaction; empty for none."""

    def prepare(self, connection: Connection) -> None:
        """Once in a store's life, before its tables are made. Raises Unavailable where no store can be."""

    def translate(self, error: exc.DBAPIError) -> BackcastError:
        """The database's complaint as an error that says what to do. Never repeats statement, values or password."""


class Instant(TypeDecorator[datetime]):
    """A moment as microseconds since 1970 in UTC: it sorts, compares and survives every database alike."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: interfaces.Dialect) -> Any:
        return None if value is None else (value - _EPOCH) // timedelta(microseconds=1)

    def process_result_value(self, value: Any, dialect: interfaces.Dialect) -> datetime | None:
        return None if value is None else _EPOCH + timedelta(microseconds=value)


class Counts(TypeDecorator[tuple[InputCount, ...]]):
    """What a chunk has read of its inputs, as JSON."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: tuple[InputCount, ...] | None, dialect: interfaces.Dialect) -> Any:
        return canonical([each.as_json() for each in value or ()]).decode()

    def process_result_value(self, value: Any, dialect: interfaces.Dialect) -> tuple[InputCount, ...]:
        return tuple(InputCount.model_validate(each) for each in json.loads(value))


class StoreNow(FunctionElement[datetime]):
    """The moment by the store's clock when the statement runs, not when its transaction began."""

    type = Instant()
    inherit_cache = True


def keep_from_children(engine: Engine) -> None:
    """A forked process opens connections of its own instead of talking into its parent's."""

    def opened(_connection: Any, record: Any) -> None:
        record.info["pid"] = os.getpid()

    def taken(_connection: Any, record: Any, _proxy: Any) -> None:
        if record.info["pid"] != os.getpid():
            record.dbapi_connection = None
            raise exc.DisconnectionError("this connection belongs to the parent process")

    event.listen(engine, "connect", opened)
    event.listen(engine, "checkout", taken)
