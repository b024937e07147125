"""What a stateful stream wrote is computed anew by one: from its own state, to literal offsets and the last window."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.control import ControlPlane
from backcast.errors import UnknownName
from backcast.model.pipeline import TableFormat
from backcast.model.replay import ReplayPin
from backcast.model.request import Request
from backcast.model.states import RunState
from backcast.model.watermark import WatermarkStrategy
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.testing.faults import SimulatedCrash, crash_at
from backcast.testing.orders import Order
from tests.crash.life import DoomedWiring

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.testing.kafka import KafkaBroker

_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_COLUMNS = "id BIGINT, shop STRING, at TIMESTAMP, amount DECIMAL(10,2)"
_YAML = """\
name: shop
spark: {{master: "local[2]"}}
catalogs:
  lake: {{type: jdbc, uri: "jdbc:sqlite:{lake}/catalog.db", warehouse: "{lake}/warehouse"}}
sources:
  orders:
    type: kafka
    servers: "{servers}"
    topic: {topic}
    value: {{format: json, columns: "{columns}"}}
    time: {{column: at}}
    slack: {{before: 0s, after: 0s}}
datasets:
  hourly: {{{place}, time: {{column: start}}, grain: hour}}
pipelines:
  hourly:
    transform: pipelines.hourly:hourly
    version: 1.0.0
    inputs: {{orders: orders}}
    output: hourly
streams:
  live:
    pipeline: hourly
    checkpoint: checkpoint
    watermark: {{column: at, delay: 10m}}
    most_per_trigger: 20
    external: true
"""
_TRANSFORM = """\
from pyspark.sql import functions as F

def hourly(inputs, ctx):
    orders = inputs["orders"]{unique}
    hours = orders.groupBy(F.window("at", "1 hour"))
    amount = (F.sum("amount") * {factor}).cast("decimal(20,2)")
    found = hours.agg(F.count("*").alias("orders"), amount.alias("amount"))
    return found.selectExpr("window.start AS start", "orders", "amount")
"""
_UNIQUE = '.dropDuplicatesWithinWatermark(["id"])'


class Shop:
    """A project, its topic, and a stateful stream that somebody else runs into its table."""

    def __init__(self, root: Path, spark: SparkSession, broker: KafkaBroker, table: str, lake: Path) -> None:
        self.root, self.spark, self.broker, self.table = root, spark, broker, table
        self.topic = broker.create_topic(f"replay-{root.name}"[:60].replace("[", "-").replace("]", ""), 2)
        delta = table.startswith("delta.")
        layout = "USING delta" if delta else "USING iceberg PARTITIONED BY (hours(start))"
        spark.sql(f"CREATE TABLE {table} (start TIMESTAMP, orders BIGINT, amount DECIMAL(20,2)) {layout}")
        place = "path: lake/hourly" if delta else f"table: {table}"
        text = _YAML.format(lake=lake, servers=broker.servers, topic=self.topic, columns=_COLUMNS, place=place)
        (root / "backcast.yaml").write_text(text)
        (root / "pipelines").mkdir()
        self.deploy("1")

    def deploy(self, factor: str, unique: str = _UNIQUE) -> None:
        (self.root / "pipelines" / "hourly.py").write_text(_TRANSFORM.format(factor=factor, unique=unique))

    def send(self, hours: Iterable[float], first: int) -> None:
        """Orders, two of each id: the second is a double that the stream leaves out."""
        numbered = list(enumerate(hours, first))
        orders = [Order(number, _FIRST + timedelta(hours=hour), "1.00") for number, hour in numbered]
        self.broker.produce(self.topic, [each.record(each.id % 2) for each in orders for _ in range(2)])

    def stream(self) -> None:
        """The live query takes what is there. Plain Structured Streaming, as others would write it."""
        from backcast.model.pipeline import Job
        from backcast.model.states import Execution
        from backcast.model.time import Interval

        wiring = self.control().world
        assert isinstance(wiring, Wiring)
        replaying = wiring.replaying("live")
        window = Interval(start=_FIRST, end=_FIRST + timedelta(days=1))
        rows = replaying.planned({}, Job("live", Execution.LIVE, window, _FIRST))
        writer = rows.writeStream.option("checkpointLocation", str(self.root / "checkpoint")).outputMode("append")
        started = writer.trigger(availableNow=True).format("delta" if self.table.startswith("delta.") else "iceberg")
        place = self.table.removeprefix("delta.").strip("`")
        query = started.start(place) if self.table.startswith("delta.") else started.toTable(self.table)
        query.awaitTermination()

    def control(self, wiring: type[Wiring] = Wiring) -> ControlPlane:
        return ControlPlane(wiring(load_project(self.root)))

    def hours(self) -> dict[int, tuple[int, str]]:
        hour = f"CAST((unix_seconds(start) - {int(_FIRST.timestamp())}) / 3600 AS INT)"
        rows = self.spark.sql(f"SELECT {hour}, orders, CAST(amount AS STRING) FROM {self.table}").collect()
        found = [(row[0], (row[1], row[2])) for row in rows]
        assert len(dict(found)) == len(found), "an hour is there twice"
        return dict(sorted(found))

    def request(self, **more: object) -> Request:
        window = {"start": "2026-01-01T04:00:00", "end": "2026-01-01T08:00:00"}
        return Request.model_validate({"pipeline": "hourly", "stream": "live", "reason": "wrong", **window, **more})


@pytest.fixture(params=list(TableFormat))
def shop(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    spark: SparkSession,
    broker: KafkaBroker,
    namespace: str,
    lake_root: Path,
) -> Shop:
    delta = request.param is TableFormat.DELTA
    table = f"delta.`{tmp_path}/lake/hourly`" if delta else f"{namespace}.hourly"
    made = Shop(tmp_path, spark, broker, table, lake_root)
    made.send([number / 6 for number in range(60)], 0)
    made.stream()
    return made


def test_a_window_is_replayed_from_the_state_before_it_and_published(shop: Shop) -> None:
    """Through a crash at every point of the replay; windows at the end are flushed, and others stay as they were."""
    before = shop.hours()
    assert before[4] == (6, "6.00")
    assert 9 not in before, "the last window is still open"
    control = shop.control()
    if not shop.table.startswith("delta."):
        _plans_are_as_they_should_be(shop, control)
    shop.deploy("10")
    plan = control.plan(shop.request())
    replay = plan.manifest.replay
    assert not plan.refused, plan.findings
    assert replay is not None
    assert (replay.strategy, replay.batch is not None) == (WatermarkStrategy.SORTED, True)
    assert "dropDuplicatesWithinWatermark" in replay.because
    log = plan.manifest.inputs[0].log
    assert log is not None
    assert min(each.start for each in log.partitions) > 0, "not from the beginning"
    for name in ("replay.after-order", "replay.after-fork", "replay.before-flush", "replay.after-flush"):
        with crash_at(name), pytest.raises(SimulatedCrash):
            shop.control(DoomedWiring).run(plan.run_id)
    run = shop.control().run(plan.run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    told = next(event for event in control.logs(plan.run_id) if event.name == "replayed")
    assert told.data["speed"] > 0
    replayed = control.status(plan.run_id).replayed
    assert replayed is not None
    assert (replayed.event_seconds, replayed.slow) == (4 * 3600, False)
    shop.control().publish(plan.run_id)
    after = shop.hours()
    assert after == {**before, **dict.fromkeys((4, 5, 6, 7), (6, "60.00"))}
    assert not (shop.root / ".backcast" / "replays" / plan.run_id).exists()
    control.undo(plan.run_id)
    assert shop.hours() == before


def _plans_are_as_they_should_be(shop: Shop, control: ControlPlane) -> None:
    """A batch where that gives the same rows, a stream when asked for; from nothing where there is no state. None where
    the live query holds windows: it will write them.
    """

    def planned(**more: object) -> tuple[ReplayPin, set[str]]:
        plan = control.plan(shop.request(**more), record=False)
        assert plan.manifest.replay is not None
        return plan.manifest.replay, {each.code for each in plan.findings if each.code.startswith("replay.")}

    cold, found = planned(start="2026-01-01T00:00:00", end="2026-01-01T02:00:00")
    assert (cold.batch, cold.positions, found) == (None, {}, {"replay.as-stream", "replay.cold"})
    _open_windows_are_refused(shop, control)
    shop.deploy("1", unique="")
    _open_windows_are_refused(shop, control)
    replay, found = planned()
    assert (replay.strategy, found) == (WatermarkStrategy.BATCH, {"replay.as-batch"})
    replay, found = planned(as_stream=True)
    assert (replay.strategy, found) == (WatermarkStrategy.BOUNDED, {"replay.as-stream", "replay.skewed"})
    with pytest.raises(UnknownName, match="no stream is called 'lives'"):
        planned(stream="lives")


def _open_windows_are_refused(shop: Shop, control: ControlPlane) -> None:
    """With the state that was written under the older code, too; and whatever writes them a second time."""
    for stream in ("live", None):
        plan = control.plan(shop.request(end="2026-01-01T10:00:00", stream=stream), record=False)
        (told,) = (each for each in plan.findings if each.code == "stream.still-open")
        assert plan.refused
        assert told.reason.startswith("stream live has still to write rows from 2026-01-01 09:00 UTC on (its watermark")
        assert told.remedy.startswith("end the window at 2026-01-01T09:00Z, or plan again")
    text = (shop.root / "backcast.yaml").read_text()
    (shop.root / "backcast.yaml").write_text(text.replace("checkpoint: checkpoint\n", "checkpoint: s3://elsewhere\n"))
    plan = shop.control().plan(shop.request(end="2026-01-01T10:00:00", stream=None), record=False)
    assert "stream.unreadable" in {each.code for each in plan.findings}
    assert not plan.refused, plan.findings
    (shop.root / "backcast.yaml").write_text(text)
