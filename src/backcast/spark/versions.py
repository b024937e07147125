"""The one place that names the versions of Spark and its connectors; moving to another Spark line changes only this."""

from __future__ import annotations

from enum import Enum

SPARK = "4.0"
SCALA = "2.13"
ICEBERG = "1.11.0"
DELTA = "4.4.0"
SPARK_CONNECTORS = "4.0.0"
KAFKA_BROKER = "4.3.1"
APICURIO = "3.0.9"
SQLITE_JDBC = "3.53.4.0"
POSTGRESQL_JDBC = "42.7.14"


class Package(Enum):
    """A connector as its Maven coordinate; a session takes only those that its catalogs need."""

    ICEBERG = f"org.apache.iceberg:iceberg-spark-runtime-{SPARK}_{SCALA}:{ICEBERG}"
    DELTA = f"io.delta:delta-spark_{SPARK}_{SCALA}:{DELTA}"
    SQLITE = f"org.xerial:sqlite-jdbc:{SQLITE_JDBC}"
    POSTGRESQL = f"org.postgresql:postgresql:{POSTGRESQL_JDBC}"
    KAFKA = f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{SPARK_CONNECTORS}"
    AVRO = f"org.apache.spark:spark-avro_{SCALA}:{SPARK_CONNECTORS}"


EMBEDDED_LAKE: tuple[Package, ...] = (Package.ICEBERG, Package.SQLITE)
"""What an Iceberg catalog on SQLite needs: the lake of the demo, of `backcast init` and of the tests."""

BROKER = f"org.apache.kafka:kafka_{SCALA}:{KAFKA_BROKER}"
"""A Kafka broker for tests and demo; no session takes it."""

REGISTRY = f"io.apicurio:apicurio-registry-app:{APICURIO}:tar.gz:all"
"""A schema registry for tests: the last that runs on Java 17."""

MAVEN_DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:2.8"
"""What Maven fetches the registry with: later ones insist on a parent that the registry was published without."""
