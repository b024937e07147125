"""Which offsets hold a window of event time, and how disordered they are: read from a real broker by Spark."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.cli.dispatch import dispatch
from backcast.demo.shell import in_process
from backcast.errors import InvalidRequest
from backcast.model.column import TimeColumn, TimeKind
from backcast.model.log import OffsetRange
from backcast.model.source import Encoding, KafkaAccess, Layout, LogSource
from backcast.model.time import Interval
from backcast.project.api import open_project
from backcast.sources.kafka import survey as surveying
from backcast.sources.kafka.survey import survey
from backcast.sources.kafka.topic import KafkaTopic
from backcast.testing.kafka import KafkaBroker
from backcast.testing.kafka_records import Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.spark.settings import SessionSettings

DAY = datetime(2026, 1, 5, tzinfo=UTC)
WINDOW = Interval(start=DAY, end=DAY + timedelta(days=1))
PROJECT = """\
name: shop
catalogs:
  lake: {{type: jdbc, uri: "jdbc:sqlite:{lake}/catalog.db", warehouse: "{warehouse}"}}
sources:
  orders:
    type: kafka
    servers: {servers}
    topic: {topic}
    value: {{format: json, columns: "id BIGINT, at TIMESTAMP"}}
    time: {{column: at}}
    slack: {{before: 0s, after: 1h}}
"""


def written(hours: list[float], partition: int = 0, *, late: float = 0.0) -> list[Record]:
    """Orders with these event times, in hours from the start of the day, each written `late` hours after."""
    records = []
    for number, hour in enumerate(hours):
        event = DAY + timedelta(hours=hour)
        value = json.dumps({"id": number, "at": event.isoformat()})
        stamp = int((event + timedelta(hours=late)).timestamp() * 1000)
        records.append(Record(value, str(number), stamp, partition))
    return records


def made(broker: KafkaBroker, topic: str, partitions: int = 1) -> None:
    """A topic whose partitions all answer: what is written before that may change its order by being sent again."""
    broker.create_topic(topic, partitions)
    KafkaTopic(KafkaAccess(broker.servers), topic).facts()


def source(topic: str, column: TimeColumn | None, columns: str) -> LogSource:
    return LogSource("orders", topic, Layout(Encoding.JSON, columns), time=column)


def test_first_last_counts_foreign_records_and_disorder(
    spark: SparkSession, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the records are cut into: a block of two offsets, or all of them at once."""
    made(broker, "survey-counts", 3)
    broker.produce("survey-counts", written([-3, 1, 5, -1, 4, 30, 23, 26]))
    stamp = int(DAY.timestamp() * 1000)
    broker.produce("survey-counts", [Record("garbled", "g", stamp, 0), Record(None, "t", stamp, 0), *written([2])])
    broker.produce("survey-counts", written([25, 26], 1))
    ranges = tuple(
        OffsetRange(partition=number, start=0, end=end) for number, end in broker.end_offsets("survey-counts").items()
    )
    orders = source("survey-counts", TimeColumn(column="at"), "id BIGINT, at TIMESTAMP")
    for block in (2, 100_000):
        monkeypatch.setattr(surveying, "_BLOCK", block)
        first, none, empty = survey(spark, KafkaAccess(broker.servers), orders, ranges, WINDOW)
        assert (first.first, first.last, first.matching) == (1, 10, 5)
        assert (first.foreign, first.unreadable) == (5, 1)
        assert first.backward_seconds == timedelta(hours=28).total_seconds()
        assert (none.first, none.last, none.matching, none.foreign, none.backward_seconds) == (None, None, 0, 0, 0.0)
        assert empty.held is None
        assert first.held == OffsetRange(partition=0, start=1, end=11)


@pytest.mark.parametrize(
    ("column", "kind", "values"),
    [
        (TimeColumn(column="at", kind=TimeKind.DATE), "DATE", ["2026-01-05", "2026-01-04", "2026-01-05"]),
        (
            TimeColumn(column="at", kind=TimeKind.TIMESTAMP_NTZ),
            "TIMESTAMP_NTZ",
            ["2026-01-05T10:00:00", "2026-01-04T10:00:00", "2026-01-05T11:00:00"],
        ),
        (
            TimeColumn(column="at", kind=TimeKind.STRING, format="yyyy-MM-dd HH"),
            "STRING",
            ["2026-01-05 10", "2026-01-04 10", "2026-01-05 11"],
        ),
        (TimeColumn(column="at", kind=TimeKind.INTEGER, format="yyyyMMdd"), "INT", [20260105, 20260104, 20260105]),
        (
            TimeColumn(column="at", kind=TimeKind.INTEGER, format="epoch_millis"),
            "BIGINT",
            [1_767_607_200_000, 1_767_520_800_000, 1_767_610_800_000],
        ),
    ],
)
def test_every_kind_of_time_column_is_understood(
    spark: SparkSession, broker: KafkaBroker, column: TimeColumn, kind: str, values: list[object]
) -> None:
    topic = f"survey-{column.kind}-{column.format or ''}".replace(" ", "_")
    made(broker, topic)
    stamp = int(DAY.timestamp() * 1000)
    broker.produce(topic, [Record(json.dumps({"at": value}), None, stamp, 0) for value in values])
    ranges = (OffsetRange(partition=0, start=0, end=3),)
    (found,) = survey(spark, KafkaAccess(broker.servers), source(topic, column, f"at {kind}"), ranges, WINDOW)
    assert (found.first, found.last, found.matching, found.foreign) == (0, 2, 2, 1)
    assert found.backward_seconds == timedelta(days=1).total_seconds()


def test_a_source_without_event_time_is_refused(spark: SparkSession) -> None:
    with pytest.raises(InvalidRequest, match="has no event time"):
        survey(spark, KafkaAccess("127.0.0.1:9"), source("t", None, "id BIGINT"), (), WINDOW)


@pytest.fixture
def folder(
    tmp_path: Path,
    spark: SparkSession,
    spark_settings: SessionSettings,
    lake_root: Path,
    broker: KafkaBroker,
    request: pytest.FixtureRequest,
) -> Path:
    topic = request.node.name.replace("_", "-")
    made(broker, topic, 2)
    warehouse = spark_settings.catalogs["lake"]["warehouse"]
    text = PROJECT.format(lake=lake_root, warehouse=warehouse, servers=broker.servers, topic=topic)
    (tmp_path / "backcast.yaml").write_text(text)
    return tmp_path


def test_the_commands_tell_it_from_the_command_line(
    folder: Path, broker: KafkaBroker, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = "test-the-commands-tell-it-from-the-command-line"
    broker.produce(topic, [*written([-1, 1, 2, 23, 25]), *written([3], late=40), *written([10], partition=1)])
    project = ("--project", str(folder))
    assert dispatch(["kafka", "offsets", "orders", "--at", "2026-01-05", *project]) == 0
    page = capsys.readouterr().out
    assert "2 partitions   6 offsets from there" in page
    assert "2026-01-05 01:00:00Z" in page
    assert dispatch(["kafka", "offsets", topic, "--at", "2026-01-05T02:00Z", "--json", *project]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["offset"] for each in document["partitions"]] == [2, 0]
    control = open_project(folder)
    try:
        with in_process(control):
            window = ["kafka", "window", "orders", "--event-time", "2026-01-05..2026-01-06", *project]
            assert dispatch(window) == 0
            assert "offsets  0=1..4,1=0..1" in capsys.readouterr().out
            assert dispatch([*window, "--to-end", "--json"]) == 0
            exact = json.loads(capsys.readouterr().out)
        assert [(each["first"], each["last"], each["foreign"]) for each in exact["partitions"]] == [
            (1, 5, 1),
            (0, 0, 0),
        ]
        assert dispatch(["kafka", "offsets", "nothing", "--at", "2026-01-05", *project]) == 2
        assert "no source is called 'nothing'" in capsys.readouterr().err
    finally:
        control.world.close()
