"""The session that Backcast opens, uses or refuses."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from pyspark import SparkConf

from backcast.errors import SessionRefused
from backcast.spark.processes import current, is_alive, jvm_identity
from backcast.spark.session import check_session, open_session, task_memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.spark.settings import SessionSettings


def test_a_branch_of_a_table_can_be_written_and_the_table_stays_as_it_was(spark: SparkSession, namespace: str) -> None:
    """Iceberg's extensions, its catalog on SQLite and the connectors work together."""
    spark.sql(f"CREATE TABLE {namespace}.t (id BIGINT) USING iceberg")
    spark.sql(f"INSERT INTO {namespace}.t VALUES (1)")
    spark.sql(f"ALTER TABLE {namespace}.t CREATE BRANCH stage")
    spark.sql(f"INSERT INTO {namespace}.t.branch_stage VALUES (2)")
    assert spark.table(f"{namespace}.t").count() == 1
    assert spark.table(f"{namespace}.t.branch_stage").count() == 2


def test_frames_cross_between_pandas_and_spark(spark: SparkSession) -> None:
    """The locked pandas and pyarrow fit this Spark."""
    assert spark.range(3).toPandas()["id"].tolist() == [0, 1, 2]
    assert spark.createDataFrame(spark.range(3).toPandas()).count() == 3


def test_results_do_not_depend_on_the_machines_time_zone(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_tasks_of_a_local_session_share_the_drivers_memory(spark: SparkSession) -> None:
    assert task_memory(spark) == 2 * 1024**3


@pytest.mark.parametrize(
    ("asked", "gigabytes"),
    [({}, 1), ({"executor.memory": "3g"}, 3), ({"executor.memory": "3g", "executor.instances": "4"}, 12)],
)
def test_tasks_of_a_cluster_share_the_memory_of_as_many_executors_as_were_asked_for(
    spark: SparkSession, asked: dict[str, str], gigabytes: int
) -> None:
    conf = SparkConf(loadDefaults=False).setAll([(f"spark.{key}", value) for key, value in asked.items()])
    conf.set("spark.driver.memory", "50g")
    context = SimpleNamespace(master="spark://host:7077", getConf=lambda: conf)
    there = cast("SparkSession", SimpleNamespace(sparkContext=context, _jvm=spark._jvm))
    assert task_memory(there) == gigabytes * 1024**3


def test_a_second_call_uses_the_active_session(spark: SparkSession, spark_settings: SessionSettings) -> None:
    assert open_session(spark_settings)._jsparkSession.equals(spark._jsparkSession)


def test_an_active_session_without_a_needed_catalog_is_refused_and_left_alone(
    spark: SparkSession, spark_settings: SessionSettings
) -> None:
    """The refusal names settings but never their values, which may be secrets."""
    other = dataclasses.replace(spark_settings, catalogs={"vault": {"type": "rest", "credential": "s3cret"}})
    before = spark.sparkContext.getConf().getAll()
    with pytest.raises(SessionRefused, match=r"spark\.sql\.catalog\.vault\.credential") as caught:
        open_session(other)
    assert "s3cret" not in str(caught.value.as_dict())
    assert spark.sparkContext.getConf().getAll() == before


def test_an_active_session_in_another_time_zone_is_refused(
    spark: SparkSession, spark_settings: SessionSettings
) -> None:
    elsewhere = spark.newSession()
    elsewhere.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    with pytest.raises(SessionRefused, match=r"spark\.sql\.session\.timeZone"):
        check_session(elsewhere, spark_settings)


def test_the_driver_jvm_is_another_process_that_can_be_recognised(spark: SparkSession) -> None:
    jvm = jvm_identity(spark)
    assert jvm.pid != current().pid
    assert is_alive(jvm)


def test_what_the_jvm_prints_goes_to_the_log_file_and_not_to_the_screen(
    spark: SparkSession, spark_settings: SessionSettings, capfd: pytest.CaptureFixture[str]
) -> None:
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    jvm.java.lang.System.err.println("a word for the log")
    assert spark_settings.log_file is not None
    assert "a word for the log" in spark_settings.log_file.read_text()
    assert capfd.readouterr() == ("", "")


def test_a_connect_process_is_refused_with_the_reason() -> None:
    program = """
import os
os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
os.environ["SPARK_REMOTE"] = "sc://localhost:1"
from backcast.errors import SessionRefused
from backcast.spark.session import open_session
from backcast.spark.settings import SessionSettings
try:
    open_session(SessionSettings())
except SessionRefused as refusal:
    print(refusal.message)
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "a classic session is needed" in answer.stdout


def test_a_java_that_does_not_start_is_one_clear_error(tmp_path: Path) -> None:
    program = f"""
import os
from pathlib import Path
os.environ["JAVA_HOME"] = {str(tmp_path)!r}
from backcast.errors import SparkFailed
from backcast.spark.session import open_session
from backcast.spark.settings import SessionSettings
try:
    open_session(SessionSettings(log_file=Path({str(tmp_path / "spark.log")!r})))
except SparkFailed as failure:
    print(failure.message, "|", failure.hint)
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "Spark did not start" in answer.stdout
    assert "backcast doctor" in answer.stdout
    assert answer.stderr == ""


def test_workers_run_the_same_python_as_the_driver(spark: SparkSession) -> None:
    """A different `python3` on the PATH is of no concern."""
    versions = spark.sparkContext.parallelize([0]).map(lambda _: sys.executable).collect()
    assert versions == [sys.executable]
