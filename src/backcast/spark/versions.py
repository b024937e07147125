"""The one place that names the versions of Spark and its connectors; moving to another Spark line changes only this."""

from __future__ import annotations

from enum import Enum

SPARK = "4.0"
SCALA = "2.13"
ICEBERG = "1.11.0"
DELTA = "4.4.0"
SQLITE_JDBC = "3.53.4.0"
POSTGRESQL_JDBC = "42.7.14"


class Package(Enum):
    """A connector as its Maven coordinate; a session takes only those that its catalogs need."""

    ICEBERG = f"org.apache.iceberg:iceberg-spark-runtime-{SPARK}_{SCALA}:{ICEBERG}"
    DELTA = f"io.delta:delta-spark_{SPARK}_{SCALA}:{DELTA}"
    SQLITE = f"org.xerial:sqlite-jdbc:{SQLITE_JDBC}"
    POSTGRESQL = f"org.postgresql:postgresql:{POSTGRESQL_JDBC}"


EMBEDDED_LAKE: tuple[Package, ...] = (Package.ICEBERG, Package.SQLITE)
"""What an Iceberg catalog on SQLite needs: the lake of the demo, of `backcast init` and of the tests."""
