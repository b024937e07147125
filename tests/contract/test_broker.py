"""The broker and the registry of the tests are real: they do what only real ones do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from backcast.spark import processes
from backcast.testing.kafka import kafka_broker
from backcast.testing.kafka_records import Position, Record
from backcast.testing.kafka_topics import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from backcast.testing.kafka import KafkaBroker
    from backcast.testing.registry import SchemaRegistry

NEW_YEAR = 1_767_225_600_000
DAY = 86_400_000


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return str(request.node.name).replace("[", "-").rstrip("]")


def read(spark: SparkSession, broker: KafkaBroker, topic: str, ends: Mapping[int, int], **options: str) -> DataFrame:
    """The records of all partitions from 0 to literal ends."""
    starts = json.dumps({topic: {str(partition): 0 for partition in ends}})
    rows = spark.read.format("kafka").options(**options)
    return rows.options(
        **{
            "kafka.bootstrap.servers": broker.servers,
            # A fetch that finds nothing more waits at the broker, and Spark's next question to it waits behind.
            "kafka.fetch.max.wait.ms": "20",
            "assign": json.dumps({topic: list(ends)}),
            "startingOffsets": starts,
            "endingOffsets": json.dumps({topic: {str(partition): end for partition, end in ends.items()}}),
        }
    ).load()


def offsets(rows: DataFrame) -> list[int]:
    return sorted(row.offset for row in rows.select("offset").collect())


def test_spark_reads_what_was_written_by_literal_offsets(spark: SparkSession, broker: KafkaBroker, topic: str) -> None:
    broker.create_topic(topic, 2)
    written = broker.produce(
        topic,
        [
            Record("a", key="k1", timestamp=NEW_YEAR, partition=0, headers=(("h", b"1"), ("h", None))),
            Record(None, key="k1", timestamp=NEW_YEAR + 1, partition=0),
            Record(b"\xff", key=None, timestamp=NEW_YEAR + 2, partition=1),
            Record("not read", partition=1),
        ],
    )
    assert written == [Position(0, 0), Position(0, 1), Position(1, 0), Position(1, 1)]
    rows = read(spark, broker, topic, {0: 2, 1: 1}, includeHeaders="true").orderBy("partition", "offset").collect()
    assert [(row.partition, row.offset, row.key, row.value) for row in rows] == [
        (0, 0, b"k1", b"a"),
        (0, 1, b"k1", None),
        (1, 0, None, b"\xff"),
    ]
    assert [tuple(header) for header in rows[0].headers] == [("h", b"1"), ("h", None)]
    assert [row.timestampType for row in rows] == [0, 0, 0]
    assert broker.end_offsets(topic) == {0: 2, 1: 2}


def test_a_reader_of_committed_records_sees_neither_aborted_nor_open_ones(
    spark: SparkSession, broker: KafkaBroker, topic: str
) -> None:
    broker.create_topic(topic)
    committed = broker.transaction(topic, [Record("kept")] * 3)
    aborted = broker.transaction(topic, [Record("dropped")] * 2, commit=False)
    with broker.open_transaction(topic, [Record("open")] * 2) as undecided:
        # Each decision takes an offset of its own: 3 for the commit, 6 for the abort.
        assert [each.offset for each in (*committed, *aborted, *undecided)] == [0, 1, 2, 4, 5, 7, 8]
        assert broker.end_offsets(topic) == {0: 9}
        assert broker.end_offsets(topic, committed=True) == {0: 7}
        strict = {"kafka.isolation.level": "read_committed"}
        assert offsets(read(spark, broker, topic, {0: 7}, **strict)) == [0, 1, 2]
        assert offsets(read(spark, broker, topic, {0: 9})) == [0, 1, 2, 4, 5, 7, 8]
    assert broker.end_offsets(topic, committed=True) == {0: 10}


def test_compaction_leaves_gaps_and_the_log_start(spark: SparkSession, broker: KafkaBroker, topic: str) -> None:
    broker.create_topic(topic, cleanup_policy="compact")
    broker.produce(topic, [Record(str(n), key=f"k{n % 3}", timestamp=NEW_YEAR + n) for n in range(30)])
    ends = broker.compact(topic)
    assert ends == {0: 30}
    assert offsets(read(spark, broker, topic, ends)) == [27, 28, 29]
    assert broker.start_offsets(topic) == {0: 0}


def test_deleted_and_expired_records_move_the_log_start(broker: KafkaBroker, topic: str) -> None:
    broker.create_topic(topic, 2, segment_ms=DAY)
    now = int(time.time() * 1000)
    for age in (9, 5, 1):
        broker.produce(topic, [Record("r", timestamp=now - age * DAY, partition=partition) for partition in (0, 1)])
    broker.delete_records(topic, {0: 1})
    assert broker.start_offsets(topic) == {0: 1, 1: 0}
    broker.expire(topic, 3 * DAY, {0: 2, 1: 2})
    assert broker.end_offsets(topic) == {0: 3, 1: 3}


def test_a_topic_with_many_partitions_is_read_whole(spark: SparkSession, broker: KafkaBroker, topic: str) -> None:
    broker.create_topic(topic, 64)
    broker.produce(topic, [Record(str(n), partition=n % 64) for n in range(128)])
    ends = broker.end_offsets(topic)
    assert ends == dict.fromkeys(range(64), 2)
    assert read(spark, broker, topic, ends).count() == 128


def test_a_topic_may_grow_and_may_be_made_anew(broker: KafkaBroker, topic: str) -> None:
    broker.create_topic(topic)
    first = topic_id(broker, topic)
    broker.add_partitions(topic, 3)
    assert broker.partitions(topic) == (0, 1, 2)
    broker.delete_topic(topic)
    broker.create_topic(topic)
    assert topic_id(broker, topic) != first


def topic_id(broker: KafkaBroker, topic: str) -> str:
    from confluent_kafka import TopicCollection

    return str(broker.admin().describe_topics(TopicCollection([topic]))[topic].result(30).topic_id)


def test_a_broker_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    story = """
import os, signal
from backcast.testing.kafka import kafka_broker
with kafka_broker() as broker:
    print(broker.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    told = subprocess.run([sys.executable, "-c", story], env=environment, capture_output=True, text=True, check=False)
    assert told.returncode == -9, told.stderr
    wait_until(lambda: processes.identify(int(told.stdout)) is None, "the broker is gone")


def test_the_registry_keeps_every_version_of_a_schema(registry: SchemaRegistry, topic: str) -> None:
    from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

    def order(*fields: dict[str, Any]) -> Schema:
        return Schema(json.dumps({"type": "record", "name": "Order", "fields": fields}), "AVRO")

    number = {"name": "id", "type": "long"}
    old, new = order(number), order(number, {"name": "note", "type": ["null", "string"], "default": None})
    client = SchemaRegistryClient({"url": registry.url})
    ids = [client.register_schema(f"{topic}-value", schema) for schema in (old, new)]
    assert ids[0] != ids[1]
    assert client.get_versions(f"{topic}-value") == [1, 2]
    kept = [json.loads(client.get_schema(each).schema_str or "") for each in ids]
    assert kept == [json.loads(each.schema_str or "") for each in (old, new)]
    assert client.get_version(f"{topic}-value", 1).schema_id == ids[0]


def test_an_id_that_looks_like_an_option_is_an_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("backcast.testing.kafka.uuid.uuid4", lambda: UUID(bytes=b"\xfb" * 16))
    with kafka_broker() as broker:
        assert broker.groups() == set()
