"""The Spark session: an active classic one when there is one, otherwise a new one that suits the catalogs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from backcast.errors import SessionRefused, SparkFailed
from backcast.spark.packages import local_jars
from backcast.spark.settings import REDIRECTS, SKIPPING, SessionSettings, catalog_conf, local_cores, spark_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_session(settings: SessionSettings) -> SparkSession:
    """The session to work with. Never changes an active session: one that does not suit is refused with the reason.

    Raises SessionRefused, Unavailable when connectors cannot be fetched, SparkFailed when the JVM does not start.
    """
    refuse_connect()
    active = active_session()
    if active is not None:
        check_session(active, settings)
        return active
    started = _start(settings)
    try:
        refuse_dangers(started)
    except SessionRefused:
        started.stop()
        raise
    return started


def refuse_dangers(spark: SparkSession) -> None:
    """Raise when a setting of the session sends what is written somewhere else than it is addressed to, or leaves out
    what cannot be read.
    """
    redirects = [key for key in REDIRECTS if spark.conf.get(key, None)]
    skipping = [key for key in SKIPPING if (spark.conf.get(key, None) or "").lower() == "true"]
    if redirects or skipping:
        names = " and ".join(redirects or skipping)
        hint = f"unset it in the session, in spark-defaults.conf or wherever it is set: {names}"
        harm = "Iceberg would not write to a run's own stage" if redirects else "rows of lost files would be left out"
        raise SessionRefused(f"the Spark session sets {names}: {harm}", hint=hint)


def active_session() -> SparkSession | None:
    """The classic session of this process, if it has one (a notebook, spark-submit, an earlier call)."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # The public getter starts a context where there is none.
    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def refuse_connect() -> None:
    """Raise when this process uses Spark Connect: commits go through the JVM gateway, which Connect lacks."""
    from pyspark.sql.utils import is_remote

    if is_remote():
        hint = "unset SPARK_REMOTE and stop the Connect session, or run backcast in a process of its own"
        raise SessionRefused("this process uses a Spark Connect session; a classic session is needed", hint=hint)


def check_session(spark: SparkSession, settings: SessionSettings) -> None:
    """Raise unless an active session has the extensions, the time zone and every catalog setting that is needed."""
    if not hasattr(spark, "_jsparkSession"):
        raise SessionRefused("the active Spark session is a Connect session; a classic session is needed")
    refuse_dangers(spark)
    wanted = {"spark.sql.session.timeZone": "UTC", **catalog_conf(settings.catalogs)}
    wrong = [key for key, value in wanted.items() if spark.conf.get(key, None) != value]
    have = spark.conf.get("spark.sql.extensions", "") or ""
    if not all(each in have for each in settings.extensions):
        wrong.append("spark.sql.extensions")
    if wrong:
        # Only keys: values of catalog settings may be secrets.
        keys = ", ".join(sorted(wrong))
        hint = "start that session with these settings, or let backcast start its own in a separate process"
        raise SessionRefused(f"the active Spark session lacks or contradicts {keys}", hint=hint, settings=keys)


def task_memory(spark: SparkSession) -> int:
    """Bytes that tasks share: the driver's where they run in it, otherwise those of as many executors as were asked
    for.
    """
    conf = spark.sparkContext.getConf()
    if local_cores(str(spark.sparkContext.master)):
        text, times = conf.get("spark.driver.memory", "1g"), 1
    else:
        text, times = conf.get("spark.executor.memory", "1g"), int(conf.get("spark.executor.instances") or 1)
    # Spark's own reading of "2g": a bare number is megabytes here.
    utils = getattr(spark._jvm, "org.apache.spark.network.util.JavaUtils")
    return int(utils.byteStringAsMb(text)) * times * 1024**2


def _start(settings: SessionSettings) -> SparkSession:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    if local_cores(settings.master):
        # Spark's default is whatever `python3` is on the PATH, which may be another version than this one.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    pairs = spark_conf(settings, local_jars(settings.packages))
    conf = SparkConf(loadDefaults=False).setAll(list(pairs.items()))
    try:
        gateway = _launch(launch_gateway, conf, settings)
        context = SparkContext(conf=conf, gateway=gateway)
        spark = SparkSession(context)
        spark.range(0).schema  # noqa: B018 - extensions and catalogs are loaded, so that their errors come from here
    except (PySparkException, Py4JError, OSError) as error:
        log = f"; see {settings.log_file}" if settings.log_file else ""
        hint = "run `backcast doctor`: it checks Java, memory and the connectors"
        raise SparkFailed(f"Spark did not start: {_first_line(error)}{log}", hint=hint) from error
    return spark


def _launch(launch_gateway: Any, conf: Any, settings: SessionSettings) -> Any:
    """The JVM behind the session, with its output in the log file when there is one."""
    if settings.log_file is None:
        return launch_gateway(conf)
    settings.log_file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(settings.log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        return launch_gateway(conf, {"stdout": descriptor, "stderr": descriptor})
    finally:
        os.close(descriptor)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
