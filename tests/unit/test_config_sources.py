"""Topics in backcast.yaml: what is declared, what is secret, and what both of Kafka's clients are told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from backcast.errors import ConfigError, UnknownName
from backcast.model.log import Isolation
from backcast.model.source import Archive, Encoding, LogSource
from backcast.model.table import PublishMode
from backcast.project.config import Project, load_project
from backcast.project.identity import config_hash

GOOD = """\
name: shop
catalogs:
  lake: {type: jdbc, uri: "jdbc:sqlite:lake/catalog.db", warehouse: lake/warehouse}
sources:
  orders:
    type: kafka
    servers: "${BROKERS:-127.0.0.1:9092}"
    topic: shop.orders
    value: {format: json, columns: "id BIGINT, at TIMESTAMP"}
    time: {column: at, kind: timestamp}
    security:
      protocol: SASL_SSL
      mechanism: SCRAM-SHA-512
      username: ${KAFKA_USER}
      password: ${KAFKA_PASSWORD}
      ca_file: ca.pem
    options: {client.rack: a}
datasets:
  daily: {table: lake.shop.daily, time: {column: day, kind: date}}
pipelines:
  daily: {sql: daily.sql, version: 1.0.0, inputs: {orders: orders}, output: daily}
"""
SECRETS = {"KAFKA_USER": "anna", "KAFKA_PASSWORD": 'hush"hush'}


def load(root: Path, text: str = GOOD, **environ: str) -> Project:
    (root / "backcast.yaml").write_text(text)
    return load_project(root, environ={**SECRETS, **environ})


def test_a_topic_is_an_input_like_a_dataset(tmp_path: Path) -> None:
    project = load(tmp_path)
    (read,) = project.pipeline("daily").inputs
    assert isinstance(read.dataset, LogSource)
    assert (read.dataset.topic, read.dataset.isolation) == ("shop.orders", Isolation.COMMITTED)
    assert read.dataset.value.encoding is Encoding.JSON
    assert read.windowed
    with pytest.raises(UnknownName, match="no source is called 'order'"):
        project.log_source("order")


def test_both_clients_are_told_the_same_in_their_own_words(tmp_path: Path) -> None:
    access = load(tmp_path, BROKERS="broker:9093").kafka_access("orders")
    assert access.servers == "broker:9093"
    assert access.client["sasl.username"] == "anna"
    assert access.client["ssl.ca.location"] == str(tmp_path / "ca.pem")
    assert access.spark["kafka.security.protocol"] == access.client["security.protocol"] == "SASL_SSL"
    assert access.spark["kafka.client.rack"] == access.client["client.rack"] == "a"
    login = access.spark["kafka.sasl.jaas.config"]
    assert login.endswith(r'required username="anna" password="hush\"hush";')


def test_nothing_that_is_shown_or_hashed_holds_a_secret(tmp_path: Path) -> None:
    project = load(tmp_path)
    shown = f"{project.config!r} {project.config.model_dump_json()} {project!r} {project.kafka_access('orders')!r}"
    assert "hush" not in shown
    assert "anna" not in shown
    moved = GOOD.replace("KAFKA_USER", "OTHER").replace("9092", "9093").replace("client.rack: a", "client.rack: b")
    assert config_hash(load(tmp_path, moved, OTHER="otto"), "daily") == config_hash(load(tmp_path), "daily")
    other = GOOD.replace("id BIGINT", "id INT")
    assert config_hash(load(tmp_path, other), "daily") != config_hash(load(tmp_path), "daily")


def test_a_variable_that_is_not_set_is_missed_only_by_who_connects(tmp_path: Path) -> None:
    (tmp_path / "backcast.yaml").write_text(GOOD)
    project = load_project(tmp_path, environ={"KAFKA_USER": "anna"})
    with pytest.raises(ConfigError, match="KAFKA_PASSWORD is not set") as caught:
        project.kafka_access("orders")
    assert caught.value.attributes["key"] == "sources.orders.security.password"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("${KAFKA_PASSWORD}", "hush", "expected the secret as ${NAME} or ${file:path}, never itself"),
        ("shop.orders", "shop orders", "expected a topic name of letters, digits, dots, _ and -, got 'shop orders'"),
        ('columns: "id BIGINT, at TIMESTAMP"', "unknown: keep", "format json needs columns"),
        ("format: json", "format: avro", "format avro needs a schema_file, or a registry and a subject"),
        ("client.rack: a", "group.id: live", "group.id is Backcast's to set: leave it out"),
        ("mechanism: SCRAM-SHA-512", "mechanism: null", "mechanism, username and password belong to"),
        ("  daily: {table", "  orders: {table", "a dataset is called 'orders' too"),
        ("{orders: orders}", "{orders: {dataset: orders, window: all}}", "source 'orders' is a log: it is read by"),
        ("{orders: orders}", "{orders: {dataset: orders, version: 1}}", "source 'orders' is a log: it has no versions"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, GOOD.replace(old, new, 1))
    assert expected in caught.value.message
    assert "hush" not in caught.value.message


def with_archive(archive: str) -> str:
    return GOOD.replace("    options:", f"    archive: {archive}\n    options:")


def test_an_archive_is_a_table_a_folder_or_files(tmp_path: Path) -> None:
    source = load(tmp_path, with_archive("{table: lake.shop.raw}")).log_source("orders")
    assert source.archive == Archive(table="lake.shop.raw")
    source = load(tmp_path, with_archive("{path: raw}")).log_source("orders")
    assert source.archive == Archive(table=f"delta.`{tmp_path}/raw`", is_delta=True)
    source = load(tmp_path, with_archive("{files: raw/*.parquet, columns: {offset: kafka_offset}}")).log_source(
        "orders"
    )
    assert source.archive == Archive(files=f"{tmp_path}/raw/*.parquet", columns={"offset": "kafka_offset"})


@pytest.mark.parametrize(
    ("archive", "told"),
    [
        ("{table: lake.shop.raw, files: x}", "expected exactly one of table"),
        ("{}", "expected exactly one of table"),
        ("{table: nowhere.shop.raw}", "no catalog is called 'nowhere'"),
        ("{files: x, columns: {ofset: y}}", "columns.ofset"),
        ("{files: x, columns: {offset: 'a`b'}}", "expected a name of letters"),
    ],
)
def test_a_wrong_archive_is_told(tmp_path: Path, archive: str, told: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        load(tmp_path, with_archive(archive))


def test_each_archive_that_is_a_table_has_a_pipeline_that_nobody_else_may_be_called_like(tmp_path: Path) -> None:
    project = load(tmp_path, with_archive("{table: lake.shop.raw}"))
    spec = project.pipeline("archive-orders")
    assert (spec.output.table, spec.settings.publish_mode) == ("lake.shop.raw", PublishMode.APPEND)
    (read,) = spec.inputs
    assert isinstance(read.dataset, LogSource)
    assert (read.dataset.value.encoding, read.dataset.tombstones, read.dataset.archive) == (Encoding.RAW, True, None)
    assert config_hash(project, "daily") == config_hash(load(tmp_path), "daily")
    with pytest.raises(UnknownName, match="no pipeline is called 'archive-orders'"):
        load(tmp_path, with_archive("{files: raw}")).pipeline("archive-orders")
    twice = with_archive("{path: raw}").replace("  daily: {sql", "  archive-orders: {sql")
    with pytest.raises(ConfigError, match="'archive-orders' is the archive of a source"):
        load(tmp_path, twice)
