"""The lag of a stream by its checkpoint, asked of a real broker."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from backcast.cli.app import main
from backcast.control import ControlPlane
from backcast.model.lag import Standing
from backcast.model.manifest import Survival
from backcast.model.throttle import Behind
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.testing.kafka import KafkaBroker
from backcast.testing.kafka_records import Record
from tests.unit.test_kafka_checkpoint import batch


def project(root: Path, broker: KafkaBroker, topic: str) -> ControlPlane:
    (root / "daily.sql").write_text("SELECT 1")
    (root / "backcast.yaml").write_text(
        f"""\
name: shop
catalogs:
  lake: {{type: jdbc, uri: "jdbc:sqlite:lake/catalog.db", warehouse: lake/warehouse}}
sources:
  orders: {{type: kafka, servers: "{broker.servers}", topic: {topic}, value: {{format: json, columns: "id BIGINT"}}}}
datasets:
  daily: {{table: lake.shop.daily, time: {{column: day, kind: date}}}}
pipelines:
  daily: {{sql: daily.sql, version: 1.0.0, inputs: {{orders: orders}}, output: daily}}
streams:
  live: {{pipeline: daily, checkpoint: live}}
"""
    )
    return ControlPlane(Wiring(load_project(root)))


def records(number: int, at: datetime, partition: int = 0) -> list[Record]:
    return [Record("{}", str(each), int(at.timestamp() * 1000), partition) for each in range(number)]


def test_lag_is_told_per_partition_and_lost_records_end_with_another_exit_code(
    broker: KafkaBroker, tmp_path: Path
) -> None:
    topic, now = "lag-of-a-stream", datetime.now(UTC)
    broker.create_topic(topic, 2)
    broker.produce(topic, records(10, now - timedelta(hours=2)) + records(4, now, 1))
    control = project(tmp_path, broker, topic)
    (tmp_path / "live").mkdir()
    batch(tmp_path / "live", 0, json.dumps({topic: {"0": 6, "1": 4}}))
    file = tmp_path / "live" / "offsets" / "0"
    began = int(now.timestamp() * 1000)
    file.write_text(file.read_text().replace("1767225600000", str(began)))
    found = control.stream_lag("live")
    assert [(each.position, each.behind, each.standing) for each in found.partitions] == [
        (6, 4, Standing.KNOWN),
        (4, 0, Standing.KNOWN),
    ]
    assert found.sound
    assert 7_200 <= found.behind_seconds < 7_500
    assert [_exit_code(tmp_path, *each) for each in ((), ("--max", "3h"), ("--max", "119m"))] == [0, 0, 3]
    by_folder = control.stream_lag(str(tmp_path / "live"), topic="orders")
    assert by_folder.partitions[0].behind == 4

    world = control.world
    by_checkpoint = Behind(4, ((0, 6), (1, 4)))
    assert world.behind(world.stream("live"), None) == by_checkpoint
    assert world.behind(world.stream("live"), {0: 9}) == Behind(1 + 4, ((0, 9),)), "the second is new to it"

    broker.add_partitions(topic, 3)
    broker.produce(topic, records(3, now, 2))
    broker.delete_records(topic, {0: 8})
    assert world.behind(world.stream("live"), {0: 6}).records == 2 + 4 + 3, "what is gone is nobody's to read"
    found = control.stream_lag("live")
    assert [each.survival for each in found.partitions][:2] == [Survival.PARTIAL, Survival.OK]
    assert [(each.start, each.end) for each in found.lost] == [(6, 8)]
    assert (found.partitions[2].standing, found.partitions[2].behind) == (Standing.NEW, 3)
    assert _exit_code(tmp_path) == 3

    broker.delete_topic(topic)
    broker.create_topic(topic, 1)
    broker.produce(topic, records(20, now + timedelta(minutes=30)))
    found = control.stream_lag("live")
    assert [each.standing for each in found.partitions] == [Standing.REMADE, Standing.VANISHED]
    assert found.other_topic


def _exit_code(root: Path, *options: str) -> int:
    try:
        main(["stream", "lag", "live", *options, "--project", str(root)])
    except SystemExit as end:
        return int(end.code or 0)
    return 0
