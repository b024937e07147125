"""Promise: a replay from a topic costs little more than the same batch job by hand, and less than streamed slices.

Everything reads the same offsets of a real broker and writes the same days of an Iceberg table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any
from uuid import uuid4

from pyspark.sql import functions as F

from backcast.control import ControlPlane
from backcast.model.request import Request
from backcast.model.stage import stage_of
from backcast.model.states import RunState
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.testing.kafka import KafkaBroker, kafka_broker
from backcast.testing.kafka_records import Record
from bench.lake import Lake
from bench.measure import Contender, alternate
from bench.promise import Result, Sizes, ratio_result

LIMIT_BY_HAND, LIMIT_OF_SLICES, SLICES = 1.1, 0.77, 10
_PARTITIONS = 4
_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_COLUMNS = "id BIGINT, customer STRING, at TIMESTAMP, amount DECIMAL(12,2), quantity INT"
_SELECTED = ("id", "customer", "at", "amount", "quantity", "to_date(at) AS day")
_BATCH = 100_000
_TENTH = 0.15
_MIXING = 104_729
"""A prime: every event time is there once."""
_AGAINST = ("hand-written batch Spark", f"availableNow in {SLICES} slices", "availableNow in one")


@dataclass(frozen=True, slots=True)
class Replay:
    """A topic whose records come late, as phones send them when they are back in a network: those of every day are
    spread over all of it. And a table for each way of replaying them.
    """

    lake: Lake
    broker: KafkaBroker
    sizes: Sizes
    root: Path

    @classmethod
    def create(cls, lake: Lake, broker: KafkaBroker, sizes: Sizes) -> Replay:
        made = cls(lake, broker, sizes, lake.root / "replay")
        broker.create_topic("orders", _PARTITIONS)
        for batch in made._batches():
            broker.produce("orders", batch)
        lake.spark.sql("CREATE NAMESPACE lake.replay")
        for name in ("by_hand", "ours", "sliced", "at_once"):
            made.empty(name)
        made._write_project()
        return made

    def table(self, name: str) -> str:
        return f"lake.replay.{name}"

    def empty(self, name: str) -> None:
        """The table anew, without rows and without the files of an earlier round."""
        self.lake.spark.sql(f"DROP TABLE IF EXISTS {self.table(name)} PURGE")
        self.lake.spark.sql(
            f"CREATE TABLE {self.table(name)} ({_COLUMNS}, day DATE) USING iceberg PARTITIONED BY (day)"
        )

    def last_day(self) -> date:
        return (_FIRST + timedelta(days=self.sizes.days)).date()

    def by_hand(self) -> None:
        ends = self.broker.end_offsets("orders")
        frame = (
            self.lake.spark.read.format("kafka")
            .option("kafka.bootstrap.servers", self.broker.servers)
            .option("assign", json.dumps({"orders": sorted(ends)}))
            .option("startingOffsets", json.dumps({"orders": dict.fromkeys(map(str, ends), 0)}))
            .option("endingOffsets", json.dumps({"orders": {str(each): end for each, end in ends.items()}}))
            .load()
        )
        where = f"day >= DATE'{_FIRST.date()}' AND day < DATE'{self.last_day()}'"
        rows = self._decoded(frame).where(where)
        rows.writeTo(self.table("by_hand")).overwrite(F.expr(where))

    def streamed(self, name: str, slices: int) -> None:
        """`availableNow` from the beginning, with a checkpoint of its own, in so many batches."""
        stream = (
            self.lake.spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", self.broker.servers)
            .option("subscribe", "orders")
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", str(-(-self.sizes.records // slices)))
            .load()
        )
        query = (
            self._decoded(stream)
            .writeStream.format("iceberg")
            .option("checkpointLocation", str(self.root / f"checkpoint-{uuid4().hex}"))
            .option("fanout-enabled", "true")
            .trigger(availableNow=True)
            .toTable(self.table(name))
        )
        query.awaitTermination()

    def checksum(self, name: str) -> tuple[object, ...]:
        return tuple(self.lake.spark.sql(f"SELECT count(*), sum(id), sum(amount * quantity) FROM {name}").collect()[0])

    def files(self, name: str) -> int:
        return int(self.lake.spark.sql(f"SELECT count(*) FROM {self.table(name)}.files").collect()[0][0])

    def control(self) -> ControlPlane:
        return ControlPlane(Wiring(load_project(self.root)))

    def request(self) -> Request:
        start, end = str(_FIRST.date()), str(self.last_day())
        return Request(pipeline="orders", start=start, end=end, reason="measuring", requested_by="bench")

    def _decoded(self, frame: Any) -> Any:
        value = F.from_json(F.col("value").cast("string"), _COLUMNS)
        return frame.select(value.alias("value")).select("value.*").selectExpr(*_SELECTED)

    def _batches(self) -> Iterator[list[Record]]:
        step = timedelta(days=self.sizes.days) / self.sizes.records
        for start in range(0, self.sizes.records, _BATCH):
            yield [self._record(number, step) for number in range(start, min(start + _BATCH, self.sizes.records))]

    def _record(self, number: int, step: timedelta) -> Record:
        at = _FIRST + step * (number * _MIXING % self.sizes.records)
        value = {
            "id": number,
            "customer": f"customer-{number * 7919 % 100_000}",
            "at": at.isoformat(timespec="milliseconds"),
            "amount": f"{number * 104_729 % 100_000 / 100:.2f}",
            "quantity": 1 + number % 9,
        }
        timestamp = int((_FIRST + step * number).timestamp() * 1000)
        return Record(json.dumps(value), key=str(number), timestamp=timestamp, partition=number % _PARTITIONS)

    def _write_project(self) -> None:
        (self.root / "models").mkdir(parents=True)
        (self.root / "models" / "orders.sql").write_text(f"SELECT {', '.join(_SELECTED)} FROM orders\n")
        catalog = self.lake.catalog
        (self.root / "backcast.yaml").write_text(
            dedent(
                f"""\
                name: replay
                spark: {{master: "local[2]"}}
                catalogs:
                  lake: {{type: jdbc, uri: "jdbc:sqlite:{catalog}/catalog.db", warehouse: "{catalog}/warehouse"}}
                sources:
                  orders:
                    type: kafka
                    servers: "{self.broker.servers}"
                    topic: orders
                    value: {{format: json, columns: "{_COLUMNS}"}}
                    time: {{column: at, kind: timestamp}}
                    slack: {{before: {self.sizes.days + 1}d, after: {self.sizes.days + 1}d}}
                datasets:
                  ours: {{table: {self.table("ours")}, time: {{column: day, kind: date}}, grain: day}}
                pipelines:
                  orders: {{sql: models/orders.sql, version: "1", inputs: {{orders: orders}}, output: ours}}
                """
            )
        )


class StagedReplay:
    """A planned replay that is staged, proven and validated, then given up."""

    def __init__(self, replay: Replay, expected: tuple[object, ...]) -> None:
        self._replay, self._control, self._expected = replay, replay.control(), expected
        self._run_id = ""
        self.files = 0
        """Of the newest stage."""

    def contender(self) -> Contender:
        return Contender(work=self._work, before=self._plan, after=self._end)

    def close(self) -> None:
        self._control.world.close()

    def _plan(self) -> None:
        plan = self._control.plan(self._replay.request())
        assert plan.recorded, plan.findings
        self._run_id = plan.run_id

    def _work(self) -> None:
        run = self._control.run(self._run_id)
        assert run.state is RunState.ACCEPTED, run.detail

    def _end(self) -> None:
        staged = f"{self._replay.table('ours')}.`branch_{stage_of(self._run_id, None).branch}`"
        assert self._replay.checksum(staged) == self._expected
        self.files = int(self._replay.lake.spark.sql(f"SELECT count(DISTINCT _file) FROM {staged}").collect()[0][0])
        self._control.cancel(self._run_id)


def measure(lake: Lake, sizes: Sizes) -> list[Result]:
    """The job by hand, our run, and the stream in ten batches and in one, in turn."""
    with kafka_broker() as broker:
        replay = Replay.create(lake, broker, sizes)
        replay.by_hand()
        expected = replay.checksum(replay.table("by_hand"))
        assert expected[0] == sizes.records, expected
        ours = StagedReplay(replay, expected)
        streamed = {
            name: Contender(
                work=lambda name=name, slices=slices: replay.streamed(name, slices),  # type: ignore[misc]
                before=lambda name=name: replay.empty(name),  # type: ignore[misc]
            )
            for name, slices in (("sliced", SLICES), ("at_once", 1))
        }
        samples = alternate(
            {"by hand": Contender(work=replay.by_hand), "run": ours.contender(), **streamed},
            rounds=sizes.pairs,
            warm_up=sizes.warm_up,
        )
        ours.close()
        assert replay.checksum(replay.table("sliced")) == replay.checksum(replay.table("at_once")) == expected
        files = {"ours": ours.files, **{name: replay.files(name) for name in ("by_hand", "sliced", "at_once")}}
    what, run = f"replay of {sizes.records:,} records", samples["run"]
    by_hand, sliced, at_once = (f"{what}, against {each}" for each in _AGAINST)
    return [
        ratio_result("kafka", by_hand, LIMIT_BY_HAND, run, samples["by hand"], files=files),
        ratio_result("kafka", sliced, LIMIT_OF_SLICES, run, samples["sliced"]),
        # Batch is not faster by itself: no promise, only shown.
        ratio_result("kafka", at_once, None, run, samples["at_once"]),
        _files(files),
    ]


def _files(files: dict[str, int]) -> Result:
    share = files["ours"] / max(1, files["sliced"])
    return Result(
        name="kafka",
        promise=f"files of a replay, against availableNow in {SLICES} slices",
        target="a tenth",
        measured=f"{files['ours']} / {files['sliced']}",
        held=share <= _TENTH,
        numbers={"files": files},
    )
