"""One Iceberg table behind the JVM gateway, always in its newest state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from backcast.errors import Drifted, InvalidRequest
from backcast.spark.predicates import Types, quote

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAIN = "main"
_ICEBERG = "org.apache.iceberg."


class TableHandle:
    """A name and a session. Holds no state of the table: a decision on a remembered head would be a wrong one."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        parts = name.split(".")
        if len(parts) < 3 or not all(parts):
            raise InvalidRequest(f"{name!r} is not a table name", hint="write catalog.namespace.table", table=name)
        self.spark = spark
        self.name = name
        self.quoted = ".".join(quote(part) for part in parts)

    def branch(self, branch: str) -> str:
        """The quoted name under which Spark writes to a branch."""
        return f"{self.quoted}.{quote('branch_' + branch)}"

    def load(self) -> Any:
        """The Iceberg table, refreshed: a catalog with a cache hands out an old one."""
        session = self.spark._jsparkSession
        # A catalog is set up from the settings of the thread's active session, which a new thread does not have.
        self._class("org.apache.spark.sql.classic.SparkSession").setActiveSession(session)
        try:
            table = self.java("spark.Spark3Util").loadIcebergTable(session, self.quoted)
        except Exception:
            # Iceberg takes a catalog that fails to load for a namespace; asked for by name, it says why it failed.
            session.sessionState().catalogManager().catalog(self.name.partition(".")[0])
            raise
        table.refresh()
        return table

    def java(self, name: str) -> Any:
        """A class of Iceberg by its name below org.apache.iceberg."""
        return self._class(_ICEBERG + name)

    def java_list(self) -> Any:
        return self._class("java.util.ArrayList")()

    def java_set(self) -> Any:
        return self._class("java.util.HashSet")()

    def _class(self, name: str) -> Any:
        """By its whole name: asked for part by part, each part is a call to the JVM."""
        return getattr(self._jvm, name)

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm

    def items(self, iterable: Any) -> Iterator[Any]:
        """Every element of a Java iterable.

        Gathered inside the JVM first: py4j takes any error raised by an iterator for its end and would return fewer.
        """
        gathered = self.java_list()
        self.java("relocated.com.google.common.collect.Iterables").addAll(gathered, iterable)
        for index in range(gathered.size()):
            yield gathered.get(index)

    def types(self, table: Any) -> Types:
        """The current columns with Spark's simple type strings."""
        return {field.name: field.dataType.simpleString() for field in self.schema(table).fields}

    def schema(self, table: Any) -> Any:
        """The current schema as Spark's StructType."""
        from pyspark.sql.types import StructType

        return StructType.fromJson(_json(self.java("spark.SparkSchemaUtil").convert(table.schema()).json()))


def _json(text: str) -> dict[str, Any]:
    import json

    parsed: dict[str, Any] = json.loads(text)
    return parsed


def head_of(table: Any) -> str | None:
    """The current snapshot of main, as text."""
    snapshot = table.currentSnapshot()
    return None if snapshot is None else str(snapshot.snapshotId())


def ref_of(table: Any, ref: str) -> str | None:
    """The snapshot that a branch or tag points at."""
    found = table.refs().get(ref)
    return None if found is None else str(found.snapshotId())


def snapshot_of(table: Any, version: str) -> Any:
    """The snapshot of that version; Drifted when it is gone."""
    snapshot = table.snapshot(int(version)) if version.isdigit() else None
    if snapshot is None:
        raise Drifted(
            f"version {version} of {table.name()} is gone",
            hint="it was expired or the table was replaced: plan again",
            version=version,
        )
    return snapshot


def parent_of(snapshot: Any) -> str | None:
    parent = snapshot.parentId()
    return None if parent is None else str(parent)
