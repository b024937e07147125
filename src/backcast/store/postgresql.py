"""A store in one schema of a PostgreSQL database, shared by any number of hosts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, exc
from sqlalchemy.ext.compiler import compiles

from backcast.errors import BackcastError, ConfigError, StateConflict, Unavailable
from backcast.store.dialect import StoreNow, Transaction, keep_from_children
from backcast.store.postgresql_errors import connecting_failed, statement_failed

if TYPE_CHECKING:
    from sqlalchemy.sql.compiler import SQLCompiler

ADDRESS = "postgresql://user@host/database"

OLDEST = 15
"""The oldest major version that the contract suite runs on."""

SCHEMA = "public"

STALLED_SECONDS = 10
"""How long a writer may keep its turn without sending a statement; then the server ends its transaction."""

_TURN = 0x62636173
"""The first half of the advisory lock that makes one writer of many; the second names the schema."""

_DRIVER_DEFAULTS = {
    "application_name": "backcast",
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}
"""A server that vanished is noticed within the time of a lease, instead of after the two hours of most systems."""

_OPTIONS = frozenset(
    {*_DRIVER_DEFAULTS, "channel_binding", "gssencmode", "host", "krbsrvname", "passfile", "schema", "sslcert"}
    | {"sslcrl", "sslkey", "sslmode", "sslrootcert", "target_session_attrs"}
)


@compiles(StoreNow, "postgresql")
def _now(element: StoreNow, compiler: SQLCompiler, **_: Any) -> str:
    """Unlike now(), this clock goes on within a transaction."""
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT)"


class Postgresql:
    """Implements `Dialect`. Writers wait their turn at an advisory lock, which the server frees if one of them dies."""

    def __init__(self, url: URL, busy_seconds: float) -> None:
        self._schema = _checked(url)
        self._url = url
        self._busy_seconds = busy_seconds
        place = url.render_as_string().partition("://")[2].rpartition("@")[2].partition("?")[0]
        self.where = f"postgresql://{place}" + ("" if self._schema == SCHEMA else f"?schema={self._schema}")

    def reachable(self, *, create: bool) -> bool:
        """A server makes nothing when it is only asked."""
        return True

    def engine(self) -> Engine:
        given = {key: value for key, value in self._url.query.items() if key != "schema"}
        try:
            engine = create_engine(
                self._url.set(drivername="postgresql+psycopg", query={}),
                connect_args={"client_encoding": "utf8", **_DRIVER_DEFAULTS, **given},
                hide_parameters=True,
                pool_pre_ping=True,
                use_native_hstore=False,
            )
        except ModuleNotFoundError as error:
            hint = "install it with `pip install 'backcast[postgres]'`"
            raise ConfigError("a store on PostgreSQL needs the driver psycopg", hint=hint) from error
        event.listen(engine, "connect", _opened)
        keep_from_children(engine)
        return engine

    def begin(self, kind: Transaction) -> str:
        here = f'SET LOCAL search_path = "{self._schema}"'
        match kind:
            case Transaction.READS:
                return f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {here}"
            case Transaction.WRITES:
                # Each statement after the lock must see what the writer before committed: READ COMMITTED, not more.
                return (
                    f"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {here};"
                    f" SET LOCAL lock_timeout = {max(1, int(self._busy_seconds * 1000))};"
                    f" SET LOCAL idle_in_transaction_session_timeout = '{STALLED_SECONDS}s';"
                    " SELECT set_config('synchronous_commit', 'on', true)"
                    " WHERE current_setting('synchronous_commit') = 'off';"
                    f" SELECT pg_advisory_xact_lock({_TURN}, hashtext('{self._schema}'))"
                )
            case Transaction.NONE:
                return ""

    def prepare(self, connection: Connection) -> None:
        """Make the schema, unless it is there: then this user may lack the right to make any."""
        version = connection.exec_driver_sql("SELECT current_setting('server_version_num')::int / 10000").scalar_one()
        if version < OLDEST:
            raise Unavailable(
                f"the store {self.where} is on PostgreSQL {version}; {OLDEST} or newer is needed",
                hint="upgrade that server, or name another one as `store` in backcast.yaml",
                store=self.where,
            )
        connection.exec_driver_sql(self.begin(Transaction.WRITES))
        known = connection.exec_driver_sql("SELECT FROM pg_namespace WHERE nspname = %s", (self._schema,))
        if known.rowcount == 0:
            connection.exec_driver_sql(f'CREATE SCHEMA "{self._schema}"')
        connection.exec_driver_sql("COMMIT")

    def translate(self, error: exc.DBAPIError) -> BackcastError:
        state = getattr(error.orig, "sqlstate", None)
        if isinstance(error, exc.IntegrityError):
            constraint = getattr(getattr(error.orig, "diag", None), "constraint_name", None)
            return StateConflict(
                f"the store refused a record that contradicts what it holds: {constraint or state}",
                hint="look at the run with `backcast status`, then repeat the command",
            )
        problem = connecting_failed(str(error.orig)) if state is None else statement_failed(state)
        return Unavailable(f"the store {self.where} {problem.meaning}", hint=problem.remedy, store=self.where)


def _checked(url: URL) -> str:
    """The schema, from an address that makes sense."""
    if not url.database or "/" in url.database:
        raise ConfigError("the store's address names no database", hint=f"write {ADDRESS}")
    strange = sorted(url.query.keys() - _OPTIONS)
    if strange:
        hint = f"known are {', '.join(sorted(_OPTIONS))}"
        raise ConfigError(f"the store's address has unknown options: {', '.join(strange)}", hint=hint)
    schema = url.query.get("schema", SCHEMA)
    if not isinstance(schema, str) or not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
        raise ConfigError("the store's schema is not a plain name", hint="write ?schema= with small letters, digits, _")
    return schema


def _opened(connection: Any, _record: Any) -> None:
    # The driver must never begin a transaction by itself: `begin` says how.
    connection.autocommit = True
