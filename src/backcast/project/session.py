"""The Spark session that a project asks for, and what of it changes results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.model.pipeline import TableFormat
from backcast.project.problems import Problem, raise_problems
from backcast.project.sources import needs_avro
from backcast.spark.settings import SessionSettings, local_cores
from backcast.spark.versions import Package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.project.config import Project

_SQLITE = "jdbc:sqlite:"
_POSTGRESQL = "jdbc:postgresql:"
_SQLITE_DEFAULTS = {"journal_mode": "WAL", "busy_timeout": "30000"}
_WORKER_PATH = "spark.executorEnv.PYTHONPATH"
_BETWEEN = "\x1e"

RESULT_SETTINGS: tuple[str, ...] = (
    "spark.sql.session.timeZone",
    "spark.sql.ansi.enabled",
    "spark.sql.timestampType",
    "spark.sql.caseSensitive",
    "spark.sql.storeAssignmentPolicy",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.groupByOrdinal",
    "spark.sql.orderByOrdinal",
    "spark.sql.parquet.binaryAsString",
    "spark.sql.parquet.int96AsTimestamp",
    "spark.sql.parquet.datetimeRebaseModeInRead",
    "spark.sql.parquet.datetimeRebaseModeInWrite",
    "spark.sql.parquet.int96RebaseModeInRead",
    "spark.sql.parquet.int96RebaseModeInWrite",
    "spark.sql.avro.datetimeRebaseModeInRead",
    "spark.sql.avro.datetimeRebaseModeInWrite",
    "spark.sql.legacy.timeParserPolicy",
    "spark.sql.execution.pythonUDF.arrow.enabled",
)
"""Settings that decide what the same query returns over the same rows."""


def session_settings(project: Project) -> SessionSettings:
    """Everything resolved, secrets included: for Spark and nobody else. Raises ConfigError for unset variables."""
    problems: list[Problem] = []

    def filled(text: str, *path: str) -> str:
        return project.interpolation.text(text, path, project.place(*path), problems)

    catalogs = {
        name: catalog_properties(
            {key: filled(value, "catalogs", name, key) for key, value in config.properties().items()}, project.root
        )
        for name, config in project.config.catalogs.items()
    }
    conf = {key: filled(value, "spark", "conf", key) for key, value in project.config.spark.conf.items()}
    raise_problems(problems)
    if local_cores(project.config.spark.master):
        # Python workers import the project's modules by name. Those of other machines get them with the job.
        conf[_WORKER_PATH] = ":".join(filter(None, (str(project.root), conf.get(_WORKER_PATH))))
    session_catalog = next((each for each in catalogs.values() if each["type"] == "delta"), None)
    return SessionSettings(
        app_name=f"backcast {project.name}",
        master=project.config.spark.master,
        packages=_packages(project, catalogs),
        catalogs={name: each for name, each in catalogs.items() if each["type"] != "delta"},
        conf=conf if session_catalog is None else {**_metastore(session_catalog), **conf},
        driver_memory=project.config.spark.driver_memory,
    )


def _packages(project: Project, catalogs: Mapping[str, Mapping[str, str]]) -> tuple[Package, ...]:
    uris = [each.get("uri", "") for each in catalogs.values()]
    formats = {project.relation(name).format for name in project.config.datasets}
    needed = {
        Package.ICEBERG: True,
        Package.SQLITE: any(uri.startswith(_SQLITE) for uri in uris),
        Package.POSTGRESQL: any(uri.startswith(_POSTGRESQL) for uri in uris),
        Package.DELTA: TableFormat.DELTA in formats or _is_delta(project),
        Package.KAFKA: bool(project.config.sources),
        Package.AVRO: needs_avro(project),
    }
    return tuple(package for package, wanted in needed.items() if wanted)


def _is_delta(project: Project) -> bool:
    """Whether a quarantine or an archive is a Delta table."""
    sources = [project.log_source(name) for name in project.config.sources]
    kept = any(each.quarantine is not None and each.quarantine.table.startswith("delta.`") for each in sources)
    return kept or any(each.archive is not None and each.archive.is_delta for each in sources)


def _metastore(properties: Mapping[str, str]) -> dict[str, str]:
    """Where Spark's own catalog keeps names: a Hive metastore when there is one, else a file that one process uses."""
    warehouse = properties["warehouse"]
    conf = {"spark.sql.catalogImplementation": "hive", "spark.sql.warehouse.dir": warehouse}
    if uri := properties.get("uri"):
        return {**conf, "spark.hadoop.hive.metastore.uris": uri}
    url = f"jdbc:derby:;databaseName={warehouse}/metastore_db;create=true"
    return {**conf, "spark.hadoop.javax.jdo.option.ConnectionURL": url}


def catalog_properties(properties: dict[str, str], root: Path) -> dict[str, str]:
    """Paths made absolute against the project; an embedded catalog gets what it needs to be shared by processes."""
    result = dict(properties)
    if warehouse := result.get("warehouse"):
        result["warehouse"] = _absolute(warehouse, root)
    uri = result.get("uri", "")
    if result["type"] == "jdbc":
        # Views need V1.
        result.setdefault("jdbc.schema-version", "V1")
    if uri.startswith(_SQLITE):
        path, _, query = uri.removeprefix(_SQLITE).partition("?")
        given = dict(part.partition("=")[::2] for part in query.split("&") if part)
        options = "&".join(f"{key}={value}" for key, value in {**_SQLITE_DEFAULTS, **given}.items())
        result["uri"] = f"{_SQLITE}{_absolute(path, root)}?{options}"
    return result


def _absolute(path: str, root: Path) -> str:
    """A path of this machine against the root; anything with a scheme stays as it is."""
    return path if ":" in path else str(root / Path(path).expanduser())


def make_folders(settings: SessionSettings) -> None:
    """SQLite makes its file but not the folder around it."""
    for properties in settings.catalogs.values():
        uri = properties.get("uri", "")
        if uri.startswith(_SQLITE):
            Path(uri.removeprefix(_SQLITE).partition("?")[0]).parent.mkdir(parents=True, exist_ok=True)


def result_settings(spark: SparkSession) -> dict[str, str]:
    """The session's settings that change results, its version, and every compatibility switch that was set."""
    conf = spark._jsparkSession.conf()
    # Unlike the Python getter this knows the defaults too, and tells an unknown key from a lost JVM.
    options = {key: conf.getOption(key) for key in RESULT_SETTINGS}
    found = {key: str(option.get()) for key, option in options.items() if option.isDefined()}
    # As one text: pair by pair it is two calls to the JVM for each setting there is.
    pairs = (pair.partition(" -> ") for pair in conf.getAll().mkString(_BETWEEN).split(_BETWEEN))
    legacy = {key: value for key, _, value in pairs if key.startswith("spark.sql.legacy.")}
    return dict(sorted({**found, **legacy, "spark.version": spark.version}.items()))
