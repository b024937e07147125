"""Records that could not be used are kept with everything that is known about them, once for each run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from backcast.sources.kafka.quarantine import kept_offsets, read_quarantine, write_quarantine
from backcast.sources.kafka.read import read_log
from backcast.sources.kafka.spelling import format_ranges
from backcast.testing.kafka_records import Record
from tests.spark.kafka_kit import access, all_of, json_source

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from backcast.testing.kafka import KafkaBroker

_AT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("kind", ["iceberg", "delta"])
def test_a_repeated_chunk_leaves_one_copy(
    spark: SparkSession, broker: KafkaBroker, namespace: str, tmp_path: Path, kind: str
) -> None:
    """What is there already is not written again, whatever chunk comes with it; other runs have copies of their own."""
    table = f"{namespace}.quarantine" if kind == "iceberg" else f"delta.`{tmp_path}/quarantine`"
    topic = broker.create_topic(f"quarantine-{kind}")
    broker.produce(
        topic, [Record("{", "k", 1_000, headers=(("h", b"v"),)), Record('{"id":1}'), Record("5"), Record("")]
    )
    (whole,) = all_of(broker, topic)
    frame = read_log(spark, access(broker), json_source(topic, "id BIGINT"), (whole,)).where("_problem IS NOT NULL")
    assert read_quarantine(spark, table, "run-1").collect() == []
    assert kept_offsets(spark, table, "run-1", topic) == ()

    write_quarantine(spark, table, "run-1", frame.where("_kafka.offset < 3"), ("c1",), _AT)
    write_quarantine(spark, table, "run-2", frame, ("c1",), _AT)
    write_quarantine(spark, table, "run-1", frame, ("c1", "c2"), _AT)
    assert spark.table(table).groupBy("run_id").count().orderBy("run_id").collect() == [("run-1", 3), ("run-2", 3)]
    assert format_ranges(kept_offsets(spark, table, "run-1", topic)) == "0=0..1,0=2..4"
    assert kept_offsets(spark, table, "run-1", "another-topic") == ()
    first, second, third = (row.asDict() for row in read_quarantine(spark, table, "run-1").collect())
    assert first.pop("headers")[0].asDict() == {"key": "h", "value": bytearray(b"v")}
    assert first.pop("record_time").timestamp() == 1
    assert first.pop("at").replace(tzinfo=UTC) == _AT
    assert first == {
        "run_id": "run-1",
        "chunk": "c1",
        "topic": topic,
        "partition": 0,
        "offset": 0,
        "reason": "the value is not one JSON object",
        "key": bytearray(b"k"),
        "value": bytearray(b"{"),
    }
    assert [(each["offset"], each["chunk"]) for each in (second, third)] == [(2, "c1"), (3, "c1, c2")]
