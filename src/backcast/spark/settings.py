"""What a session is asked to be, and the Spark configuration that follows from it."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from backcast.spark.versions import EMBEDDED_LAKE, Package

ICEBERG_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
DELTA_EXTENSIONS = "io.delta.sql.DeltaSparkSessionExtension"
_DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
_ICEBERG_CATALOG = "org.apache.iceberg.spark.SparkCatalog"
_ICEBERG_SESSION_CATALOG = "org.apache.iceberg.spark.SparkSessionCatalog"
_LOG4J = Path(__file__).with_name("log4j2.properties")
_GIB = 1024**3

REDIRECTS = ("spark.wap.id", "spark.wap.branch")
"""Iceberg's write-audit-publish: with one of them set, a write to a table goes to a branch or a snapshot of its own."""

SKIPPING = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
"""With one of them on, Spark reads what it finds and says nothing about the rest."""

_OPEN_FILES = "spark.sql.maxConcurrentOutputFileWriters"
"""Without any a task sorts its rows and writes one file after the other: each that is open takes megabytes of it."""

_CONTAINER_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Where a container finds its own limit, in the second and in the first version of control groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSettings:
    """A Spark session to be opened. Nothing here is read from the environment."""

    app_name: str = "backcast"
    master: str = "local[*]"
    packages: tuple[Package, ...] = EMBEDDED_LAKE
    catalogs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Iceberg catalogs: name to properties, without the `spark.sql.catalog.<name>.` prefix."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Further Spark settings; they win over the defaults here, except for the Iceberg extensions and catalogs."""
    driver_memory: str | None = None
    """As Spark writes it (`4g`). None: two fifths of the machine's memory, at least 1 GiB and at most 8 GiB."""
    log_level: str = "ERROR"
    log_file: Path | None = None
    """Where the JVM's output goes, appended. None: this process's own stdout and stderr."""

    @property
    def delta(self) -> bool:
        """Whether Delta tables can be read and written."""
        return Package.DELTA in self.packages

    @property
    def extensions(self) -> tuple[str, ...]:
        return (ICEBERG_EXTENSIONS, DELTA_EXTENSIONS) if self.delta else (ICEBERG_EXTENSIONS,)


def embedded_catalog(root: Path) -> dict[str, str]:
    """Properties of an Iceberg catalog that needs no server: SQLite for the pointers, a folder for the files."""
    return {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{root}/catalog.db?journal_mode=WAL&busy_timeout=30000",
        # Views need V1.
        "jdbc.schema-version": "V1",
        "warehouse": f"{root}/warehouse",
    }


def catalog_conf(catalogs: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """The catalogs as Spark settings. Caching is always off: nothing may be decided on a cached head."""
    conf: dict[str, str] = {}
    for name, properties in catalogs.items():
        prefix = f"spark.sql.catalog.{name}"
        conf[prefix] = _ICEBERG_SESSION_CATALOG if name == "spark_catalog" else _ICEBERG_CATALOG
        conf |= {f"{prefix}.{key}": value for key, value in properties.items()}
        conf[f"{prefix}.cache-enabled"] = "false"
    return conf


def spark_conf(settings: SessionSettings, jars: tuple[Path, ...]) -> dict[str, str]:
    """The whole configuration of a new session, with these connector jars."""
    conf = {
        "spark.app.name": settings.app_name,
        "spark.master": settings.master,
        "spark.driver.memory": settings.driver_memory or f"{default_driver_gib()}g",
        "spark.log.level": settings.log_level,
        "spark.sql.session.timeZone": "UTC",
        # Otherwise the first query leaves a spark-warehouse folder in the current directory.
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir(), f"backcast-warehouse-{os.getuid()}")),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        **_local_defaults(settings.master),
        **(_delta_conf(settings.master) if settings.delta else {}),
        **settings.conf,
        **catalog_conf(settings.catalogs),
        **dict.fromkeys(SKIPPING, "false"),
        _OPEN_FILES: "0",
    }
    conf["spark.sql.extensions"] = _joined(",", settings.conf.get("spark.sql.extensions"), *settings.extensions)
    logging = f'"-Dlog4j2.configurationFile={_LOG4J.as_uri()}" -Dbackcast.log.level={settings.log_level}'
    conf["spark.driver.extraJavaOptions"] = _joined(" ", logging, settings.conf.get("spark.driver.extraJavaOptions"))
    if local_cores(settings.master):
        # On the class path and not in spark.jars: a local session would copy 60 MB of jars at every start, and a killed
        # one would leave them behind.
        own = settings.conf.get("spark.driver.extraClassPath")
        conf["spark.driver.extraClassPath"] = _joined(":", *map(str, jars), own)
    else:
        conf["spark.jars"] = _joined(",", *map(str, jars), settings.conf.get("spark.jars"))
    return conf


def local_cores(master: str) -> int:
    """How many cores a local master uses; 0 when the master is a cluster."""
    match = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", master)
    if match is None:
        return 0
    if match[1] == "*":
        return os.cpu_count() or 1
    return int(match[1] or 1)


def default_driver_gib(memory: int | None = None) -> int:
    """Two fifths of the memory, or of what this machine or container has, from 1 to 8 GiB."""
    return max(1, min(8, (machine_memory() if memory is None else memory) * 2 // 5 // _GIB))


def machine_memory(limits: tuple[Path, ...] = _CONTAINER_LIMITS) -> int:
    """Bytes that this machine has, or its container when that has less."""
    texts = [limit.read_text().strip() for limit in limits if limit.is_file()]
    here = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([here, *(int(text) for text in texts if text.isdigit())])


def _local_defaults(master: str) -> dict[str, str]:
    cores = local_cores(master)
    if not cores:
        return {}
    return {
        "spark.sql.shuffle.partitions": str(4 * cores),
        # A host name that resolves to nowhere, or a VPN, must not keep a local session from starting.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }


def _delta_conf(master: str) -> dict[str, str]:
    """Delta reads a table's log as a Spark job, with 50 tasks unless told otherwise."""
    cores = local_cores(master)
    return {"spark.sql.catalog.spark_catalog": _DELTA_CATALOG} | (
        {"spark.databricks.delta.snapshotPartitions": str(cores)} if cores else {}
    )


def _joined(separator: str, *parts: str | None) -> str:
    return separator.join(part for part in parts if part)
