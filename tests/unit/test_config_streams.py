"""Streams in backcast.yaml: whose transform, which checkpoint, and what cannot be streamed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from backcast.errors import ConfigError, InvalidRequest, UnknownName
from backcast.model.stream import StreamWrite, Watermark
from backcast.project.config import Project, load_project
from backcast.project.identity import config_hash

_GOOD = """\
name: shop
catalogs:
  lake: {type: jdbc, uri: "jdbc:sqlite:lake/catalog.db", warehouse: lake/warehouse}
sources:
  orders:
    type: kafka
    servers: 127.0.0.1:9092
    topic: shop.orders
    value: {format: json, columns: "id BIGINT, at TIMESTAMP"}
    time: {column: at}
datasets:
  daily: {table: lake.shop.daily, time: {column: day, kind: date}}
  other: {table: lake.shop.other, time: {column: day, kind: date}, key: [day], version: at}
pipelines:
  daily: {sql: daily.sql, version: 1.0.0, inputs: {orders: orders}, output: daily}
  other: {sql: other.sql, version: 1.0.0, inputs: {daily: daily}, output: other}
"""
_STREAM = """\
streams:
  live:
    pipeline: daily
    checkpoint: .checkpoints/live
    trigger: 5s
    watermark: {column: at, delay: 10m}
"""


def _load(root: Path, streams: str = _STREAM, good: str = _GOOD) -> Project:
    (root / "backcast.yaml").write_text(good + streams)
    return load_project(root, environ={})


def test_a_stream_has_topic_and_dataset_of_its_pipeline(tmp_path: Path) -> None:
    stream = _load(tmp_path).stream("live")
    assert (stream.input, stream.source.topic, stream.dataset.name) == ("orders", "shop.orders", "daily")
    assert stream.checkpoint == str(tmp_path / ".checkpoints" / "live")
    assert (stream.write, stream.trigger, stream.external) == (StreamWrite.APPEND, timedelta(seconds=5), False)
    assert stream.watermark == Watermark("at", timedelta(minutes=10))


def test_what_cannot_be_streamed_is_told_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no stream is called 'lives'"):
        _load(tmp_path).stream("lives")
    with pytest.raises(InvalidRequest, match=r"streams\.live: pipeline 'other' reads no topic"):
        _load(tmp_path, _STREAM.replace("daily", "other")).stream("live")
    with pytest.raises(InvalidRequest, match=r"streams\.live: merge needs a key and a version column of 'daily'"):
        _load(tmp_path, _STREAM + "    write: merge\n").stream("live")
    older = _GOOD.replace("{orders: orders}", "{orders: orders, days: {dataset: other, window: all, version: 7}}")
    with pytest.raises(InvalidRequest, match=r"streams\.live: a stream reads the newest version, and 'days' names"):
        _load(tmp_path, good=older).stream("live")
    assert _load(tmp_path, _STREAM + "    external: true\n", older).stream("live").external
    with pytest.raises(ConfigError, match="no pipeline is called 'dayly'"):
        _load(tmp_path, _STREAM.replace("daily", "dayly"))


@pytest.mark.parametrize(
    "spelled", [".checkpoints/live", ".checkpoints/../.checkpoints/live", "alias", "file:{root}/.checkpoints/live"]
)
def test_two_streams_cannot_have_one_checkpoint(tmp_path: Path, spelled: str) -> None:
    (tmp_path / "alias").symlink_to(tmp_path / ".checkpoints/live")
    other = f"  second: {{pipeline: daily, checkpoint: {spelled.format(root=tmp_path)}, external: true}}\n"
    with pytest.raises(ConfigError, match=r"streams\.second\.checkpoint: streams\.live has this folder") as refused:
        _load(tmp_path, _STREAM + other)
    assert "give each stream a folder of its own" in str(refused.value)
    assert "backcast.yaml:23:" in str(refused.value)
    _load(tmp_path, _STREAM + other.replace(spelled.format(root=tmp_path), ".checkpoints/second"))


def test_a_stream_that_is_declared_later_is_no_drift_of_a_pipeline(tmp_path: Path) -> None:
    assert config_hash(_load(tmp_path, ""), "daily") == config_hash(_load(tmp_path), "daily")
