"""Records that a stream dropped as late, replayed by each of the five strategies: which rows come out, and what of them
the diff tells as late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.cli.render.plan import replay_lines
from backcast.errors import InvalidRequest, PlanRefused
from backcast.model.diff import Diff, DiffLate
from backcast.model.replay import ReplayPin
from backcast.model.states import RunState
from backcast.model.watermark import WatermarkStrategy as Strategy
from backcast.testing.orders import Order
from tests.e2e.test_stream_replay import Shop
from tests.unit.cli_screens import shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.testing.kafka import KafkaBroker

_FIRST = datetime(2026, 1, 1, tzinfo=UTC)
_LIVE = {4: 6, 5: 6, 6: 6, 7: 6}
_WITH_LATE = {4: 7, 5: 7, 6: 6, 7: 6}
_STATEFUL = """\
def hourly(inputs, ctx):
    def total(key, frames, state):
        yield from frames

    orders = inputs["orders"].selectExpr("date_trunc('HOUR', at) AS start", "1L AS orders", "amount", "id")
    shape = "start TIMESTAMP, orders BIGINT, amount DECIMAL(10,2), id BIGINT"
    rows = orders.groupBy("id").applyInPandasWithState(total, shape, "n BIGINT", "append", "NoTimeout")
    return rows.selectExpr("start", "orders", "CAST(amount AS DECIMAL(20,2)) AS amount")
"""


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession, broker: KafkaBroker, namespace: str, lake_root: Path) -> Shop:
    """Six orders an hour in two partitions; then one of hour 4 and one of hour 5, each with its double, that are
    written and read when hour 9 is over.
    """
    made = Shop(tmp_path, spark, broker, f"{namespace}.hourly", lake_root)
    config = tmp_path / "backcast.yaml"
    config.write_text(config.read_text().replace("after: 0s", "after: 12h"))
    made.send([number / 6 for number in range(60)], 0)
    made.stream()
    late = [
        Order(number, _FIRST + timedelta(hours=hour), "1.00", late=timedelta(hours=10 - hour))
        for number, hour in ((1000, 4.5), (1001, 5.5))
    ]
    made.broker.produce(made.topic, [each.record(each.id % 2) for each in late for _ in range(2)])
    made.stream()
    assert {hour: orders for hour, (orders, _) in made.hours().items() if hour in _LIVE} == _LIVE, "it dropped them"
    return made


class Replays:
    """Runs of one window, one after the other; nothing is published."""

    def __init__(self, shop: Shop) -> None:
        self.shop, self.control = shop, shop.control()
        self.said: list[str] = []
        self.closing: list[set[int]] = []
        """Hours that each batch of the newest run closed, where it closed any."""

    def planned(self, strategy: Strategy | None, **more: object) -> ReplayPin:
        plan = self.control.plan(self.shop.request(watermark=strategy, **more), record=False)
        assert not plan.refused, plan.findings
        assert plan.manifest.replay is not None
        return plan.manifest.replay

    def _closing(self, run_id: str) -> list[set[int]]:
        batches = sorted((self.shop.root / ".backcast" / "replays" / run_id / "rows").glob("*"))
        closed = [self.shop.spark.read.parquet(str(each)).select("start").collect() for each in batches]
        return [{row["start"].astimezone(UTC).hour for row in rows} for rows in closed if rows]

    def staged(self, strategy: Strategy) -> tuple[dict[int, int], Diff]:
        """How many orders each hour has on the stage, and the diff."""
        plan = self.control.plan(self.shop.request(watermark=strategy))
        assert not plan.refused, plan.findings
        run = self.control.run(plan.run_id, on_progress=lambda progress: self.said.append(progress.message))
        assert run.state is RunState.ACCEPTED, run.detail
        self.closing = self._closing(plan.run_id)
        diff = self.control.diff(plan.run_id)
        rows = self.control.diff_rows(plan.run_id).select("after.start", "after.orders").where("start IS NOT NULL")
        changed = {row["start"].astimezone(UTC).hour: row["orders"] for row in rows.collect()}
        self.control.cancel(plan.run_id)
        return {**_LIVE, **changed}, diff


def _as_live(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[int, int], Diff]:
    """Of a stream that says nothing about its batches, with a throttle."""
    monkeypatch.setattr("backcast.model.replay.USUAL_BATCH", 20)
    file = shop.root / "backcast.yaml"
    declared = file.read_text()
    paced = declared.replace("    most_per_trigger: 20\n", "")
    file.write_text(paced.replace("    output: hourly\n", "    output: hourly\n    throttle: {pause: 1s}\n"))
    replays = Replays(shop)
    found = replays.staged(Strategy.BOUNDED)
    assert len(replays.closing) > 1, "the windows do not close all at once"
    assert sum(map(len, replays.closing)) == len(set().union(*replays.closing)), "and each of them once"
    assert sum(said.startswith("rests 1 s") for said in replays.said) >= 2, "behind its batches"
    file.write_text(declared)
    return found


def test_each_strategy_gives_the_rows_that_it_promises_and_the_diff_tells_which_records_were_late(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    replays = Replays(shop)
    late = DiffLate(stream="live", records=4, taken=4, chunks={"2026-01-01T04Z": 2, "2026-01-01T05Z": 2})
    for strategy in (Strategy.SORTED, Strategy.PARTITIONS):
        orders, diff = replays.staged(strategy)
        assert (orders, diff.late) == (_WITH_LATE, late), strategy

    orders, diff = _as_live(shop, monkeypatch)
    assert (orders, diff.late) == (_LIVE, DiffLate(stream="live", taken=0)), "it drops them as the stream did"

    shop.deploy("10")
    orders, diff = replays.staged(Strategy.BOUNDED)
    assert (orders, diff.late) == (_LIVE, late.model_copy(update={"taken": 0})), "also where other things change"
    shop.deploy("1", unique="")
    orders, diff = replays.staged(Strategy.BATCH)
    assert orders == {hour: 2 * number for hour, number in _WITH_LATE.items()}, "nobody leaves the doubles out"
    assert diff.late == late, "a batch takes what is late"

    shop.deploy("1")
    (shop.root / "checkpoint" / "offsets").rename(shop.root / "elsewhere")
    _, diff = replays.staged(Strategy.SORTED)
    assert diff.late is not None
    assert "it has no folder `offsets`" in diff.late.because
    assert not diff.late.chunks


def test_corrections_replace_only_the_windows_that_late_records_touch(shop: Shop) -> None:
    before, control = shop.hours(), shop.control()
    plan = control.plan(shop.request(watermark=Strategy.CORRECTIONS))
    replay = plan.manifest.replay
    assert replay is not None
    assert (replay.computed, replay.late, replay.unknown) == (Strategy.SORTED, 4, 0)
    assert replay.because.startswith("4 records that it dropped as late touch 2 hours; dropDuplicatesWithinWatermark")
    assert [(each.start.hour, each.end.hour) for each in plan.manifest.scope.windows] == [(4, 6)]
    assert {each.code for each in plan.findings if each.code.startswith("replay.")} == {"replay.corrections"}
    control.run(plan.run_id)
    control.publish(plan.run_id)
    assert shop.hours() == {**before, 4: (7, "7.00"), 5: (7, "7.00")}
    with pytest.raises(PlanRefused, match="stream live is not known to have dropped a record of this window") as told:
        control.plan(shop.request(watermark=Strategy.CORRECTIONS, start="2026-01-01T06:00:00"), record=False)
    assert "backcast late live" in (told.value.hint or "")


def test_a_plan_chooses_a_strategy_says_why_and_refuses_one_that_gives_other_rows(shop: Shop) -> None:
    replays = Replays(shop)
    chosen = replays.planned(None)
    assert chosen.strategy is Strategy.SORTED
    assert "a replay reads the 2 partitions of its topic at another pace than they were written" in chosen.because
    screen = "\n".join(shown(each, 120) for each in replay_lines(chosen))
    assert "stream live, as a stream, with its state after batch" in screen
    assert "watermark sorted: records come in order of event time, so none is late" in screen
    assert replays.planned(Strategy.BOUNDED).because.endswith("asked for: what the live stream would drop is dropped")
    with pytest.raises(PlanRefused, match="a batch would give other rows than stream live: dropDup") as told:
        replays.planned(Strategy.BATCH)
    assert told.value.hint == "use --watermark sorted"
    with pytest.raises(InvalidRequest, match="--watermark batch says how a stream is replayed, and no stream is named"):
        replays.planned(Strategy.BATCH, stream=None)

    shop.deploy("1", unique="")
    assert replays.planned(None).strategy is Strategy.BATCH
    assert replays.planned(Strategy.CORRECTIONS).computed is Strategy.BATCH
    with pytest.raises(InvalidRequest, match="--watermark batch contradicts --as-stream"):
        replays.planned(Strategy.BATCH, as_stream=True)

    (shop.root / "pipelines" / "hourly.py").write_text(_STATEFUL)
    with pytest.raises(PlanRefused, match="the records of a chunk come in no order, and stream live needs one"):
        replays.planned(Strategy.PARTITIONS)
