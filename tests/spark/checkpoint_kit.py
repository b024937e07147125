"""Real checkpoints of small queries over a topic, made once for each kind in a test process, and copied."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tests.spark.own_state_kit import processed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from backcast.testing.kafka import KafkaBroker

TOPIC = "checkpointed"
RECORDS = 160
FIRST = 1_767_225_600_000
"""Event time of the first record; one more each second."""
_STATE = "spark.sql.streaming.stateStore."
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
STORES = {
    "hdfs": {f"{_STATE}providerClass": _HDFS},
    "changelog": {
        f"{_STATE}providerClass": _ROCKS,
        f"{_STATE}rocksdb.changelogCheckpointing.enabled": "true",
    },
    "rocksdb": {
        f"{_STATE}providerClass": _ROCKS,
        f"{_STATE}rocksdb.changelogCheckpointing.enabled": "false",
    },
}
STORES["format 2"] = {**STORES["changelog"], f"{_STATE}checkpointFormatVersion": "2"}
"""Commits name the files of state."""
KINDS = {**STORES, "join": STORES["hdfs"], "dedup": STORES["changelog"], "own state": STORES["changelog"]}
"""All that keep state: windows that are counted, in each store; records that meet; seconds that come once; values,
lists, maps and timers of `transformWithState`.
"""
FAILURES = (PySparkException, Py4JJavaError)
"""Of a query; at its start Spark does not always put them in words of its own."""
OFTEN = {f"{_STATE}minDeltasForSnapshot": "2"}
"""So that a few batches leave snapshots, which are what a rewind can go wrong by. How often Spark looks: conftest."""


class Stopped(Exception):
    """Raised by a test in the middle of a query."""


@dataclass
class Made:
    """A checkpoint, and what its query gave out so far: by batch, rows as they came."""

    path: Path
    given: dict[int, list[tuple[Any, ...]]] = field(default_factory=dict)

    def rows(self, up_to: int | None = None) -> list[tuple[Any, ...]]:
        return sorted(row for batch, rows in self.given.items() if up_to is None or batch <= up_to for row in rows)


@dataclass(frozen=True)
class Lab:
    """Queries of each kind over one topic."""

    spark: SparkSession
    broker: KafkaBroker
    root: Path
    made: dict[str, Made] = field(default_factory=dict)

    def copy(self, kind: str, to: Path) -> Made:
        """A checkpoint of that kind for a test to spoil; `stateless`, or one of `KINDS`."""
        if kind not in self.made:
            original = Made(self.root / kind)
            self.run(kind, original)
            self.made[kind] = original
        original = self.made[kind]
        shutil.copytree(original.path, to, ignore=shutil.ignore_patterns(".*.tmp"))
        return Made(to, {batch: list(rows) for batch, rows in original.given.items()})

    def run(
        self,
        kind: str,
        made: Made,
        per_batch: int = 20,
        stop_at: int | None = None,
        meanwhile: Callable[[int], object] = lambda _: None,
    ) -> None:
        """All that the topic has; or until the given batch begins, which then is planned and not committed.

        `meanwhile` is what others do in the middle of each batch.
        """

        def take(rows: DataFrame, batch: int) -> None:
            meanwhile(batch)
            if batch == stop_at:
                raise Stopped
            made.given[batch] = [tuple(row) for row in rows.collect()]

        frame = self.frame(kind, per_batch)
        query = (
            frame.writeStream.outputMode("append")
            .foreachBatch(take)
            .option("checkpointLocation", str(made.path))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        except Exception as error:
            if stop_at is None or "Stopped" not in str(error):
                raise

    def frame(self, kind: str, per_batch: int = 20) -> DataFrame:
        from pyspark.sql import functions as F

        session = self.spark.newSession()
        for key, value in {**KINDS.get(kind, {}), **(OFTEN if kind in KINDS else {})}.items():
            session.conf.set(key, value)
        records = self._records(session, per_batch)
        if kind not in KINDS:
            return records.select("partition", "offset", F.col("key").cast("string").alias("name"))
        marked = records.withWatermark("timestamp", "10 seconds")
        if kind == "join":
            other = self._records(session, per_batch).withWatermark("timestamp", "10 seconds")
            near = "a.key = b.key AND a.timestamp BETWEEN b.timestamp AND b.timestamp + INTERVAL 5 SECONDS"
            met = marked.alias("a").join(other.alias("b"), F.expr(near))
            return met.select("a.partition", "a.offset", F.col("b.offset").alias("other"))
        if kind == "dedup":
            sevens = marked.withColumn("seven", F.floor(F.unix_timestamp("timestamp") / 7))
            return sevens.dropDuplicatesWithinWatermark(["seven"]).select("seven")
        if kind == "own state":
            return processed(marked, self.root)
        counted = marked.groupBy(F.window("timestamp", "10 seconds"), "key")
        return counted.count().select(
            F.unix_timestamp("window.start").alias("start"), F.col("key").cast("string").alias("name"), "count"
        )

    def _records(self, session: SparkSession, per_batch: int) -> DataFrame:
        return (
            session.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.broker.servers)
            .option("subscribe", TOPIC)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", per_batch)
            .load()
        )


def new_lab(spark: SparkSession, broker: KafkaBroker, root: Path) -> Lab:
    from backcast.testing.kafka_records import Record

    broker.create_topic(TOPIC, 2)
    records = (
        Record(json.dumps({"id": number}), str(number % 3), FIRST + number * 1000, number % 2)
        for number in range(RECORDS)
    )
    broker.produce(TOPIC, records)
    return Lab(spark, broker, root)


def bytes_of(root: Path) -> dict[str, bytes]:
    return {str(each.relative_to(root)): each.read_bytes() for each in sorted(root.rglob("*")) if each.is_file()}


def files_below(root: Path, pattern: str, keep: Callable[[Path], bool] = lambda _: True) -> Iterator[Path]:
    return (each for each in sorted(root.glob(pattern)) if each.is_file() and keep(each))


def as_after_a_kill(made: Made) -> int:
    """The newest batch is planned and not committed; its number. A restart runs it again."""
    last = max(int(each.name) for each in files_below(made.path, "commits/[0-9]*"))
    for file in ("commits/{}", "commits/.{}.crc"):
        (made.path / file.format(last)).unlink()
    return last


def restarts(lab: Lab, kind: str, made: Made, batch: int) -> str:
    """What becomes of the batch: it comes out `right`, as before, or `wrong`; or the query `fails`."""
    expected = sorted(made.given.pop(batch))
    try:
        lab.run(kind, made)
    except FAILURES:
        return "fails"
    return "right" if sorted(made.given.get(batch, [])) == expected else "wrong"
