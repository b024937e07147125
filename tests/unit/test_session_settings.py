"""The Spark configuration that follows from what a session is asked to be."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backcast.project.config import load_project
from backcast.project.session import session_settings
from backcast.spark.settings import SessionSettings, catalog_conf, default_driver_gib, local_cores, spark_conf

JARS = (Path("/jars/a.jar"), Path("/jars/b.jar"))


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local", 1), ("local[3]", 3), ("local[3,2]", 3), ("spark://host:7077", 0), ("local-cluster[2,1,1024]", 0)],
)
def test_only_local_masters_have_cores_of_this_machine(master: str, cores: int) -> None:
    assert local_cores(master) == cores


def test_a_catalog_is_never_cached_whatever_the_project_says() -> None:
    conf = catalog_conf({"lake": {"type": "jdbc", "cache-enabled": "true"}})
    assert conf["spark.sql.catalog.lake.cache-enabled"] == "false"


def test_a_local_session_takes_jars_from_the_class_path_and_a_cluster_from_spark_jars() -> None:
    local = spark_conf(SessionSettings(master="local[2]"), JARS)
    cluster = spark_conf(SessionSettings(master="spark://host:7077"), JARS)
    assert local["spark.driver.extraClassPath"] == "/jars/a.jar:/jars/b.jar"
    assert "spark.jars" not in local
    assert cluster["spark.jars"] == "/jars/a.jar,/jars/b.jar"
    assert "spark.sql.shuffle.partitions" not in cluster


def test_a_task_never_keeps_a_file_open_for_each_partition_whatever_the_project_says() -> None:
    """Delta writes as this setting has it; Iceberg is told with each write."""
    conf = spark_conf(SessionSettings(conf={"spark.sql.maxConcurrentOutputFileWriters": "500"}), JARS)
    assert conf["spark.sql.maxConcurrentOutputFileWriters"] == "0"


def test_own_settings_join_ours_instead_of_replacing_them() -> None:
    own = {
        "spark.sql.extensions": "org.example.Own",
        "spark.driver.extraClassPath": "/own.jar",
        "spark.driver.extraJavaOptions": "-Xown",
        "spark.sql.shuffle.partitions": "7",
    }
    conf = spark_conf(SessionSettings(master="local[2]", conf=own), JARS)
    assert conf["spark.sql.extensions"].split(",")[0] == "org.example.Own"
    assert len(conf["spark.sql.extensions"].split(",")) == 2
    assert conf["spark.driver.extraClassPath"] == "/jars/a.jar:/jars/b.jar:/own.jar"
    assert "log4j2.configurationFile" in conf["spark.driver.extraJavaOptions"]
    assert conf["spark.driver.extraJavaOptions"].endswith(" -Xown")
    assert conf["spark.sql.shuffle.partitions"] == "7"


def test_driver_memory_follows_the_machine_within_bounds_unless_given() -> None:
    assert 1 <= default_driver_gib() <= 8
    assert spark_conf(SessionSettings(), JARS)["spark.driver.memory"] == f"{default_driver_gib()}g"
    assert spark_conf(SessionSettings(driver_memory="3g"), JARS)["spark.driver.memory"] == "3g"


@pytest.mark.parametrize("uri", ["", "thrift://metastore:9083"])
def test_names_of_delta_tables_are_kept_by_a_metastore_or_in_a_file_below_the_warehouse(
    tmp_path: Path, uri: str
) -> None:
    catalog = {"type": "delta", "warehouse": "lake/warehouse", **({"uri": uri} if uri else {})}
    document = {"name": "shop", "catalogs": {"spark_catalog": catalog}, "datasets": {"a": {"path": "lake/a"}}}
    (tmp_path / "backcast.yaml").write_text(json.dumps(document))
    conf = session_settings(load_project(tmp_path, environ={})).conf
    assert conf["spark.sql.catalogImplementation"] == "hive"
    assert conf.get("spark.hadoop.hive.metastore.uris", "") == uri
    embedded = f"jdbc:derby:;databaseName={tmp_path}/lake/warehouse/metastore_db;create=true"
    assert conf.get("spark.hadoop.javax.jdo.option.ConnectionURL", "") == ("" if uri else embedded)
