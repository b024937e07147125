"""SIGKILL in the middle of a replay, of Python, of the JVM, of both: every record is in the table once, and proven so.

Each mode goes through its kills on one format, and on the other it dies while tasks are reading the topic. Every point
of an append is gone through in `test_kafka_replay`, in one process.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from backcast.model.pipeline import TableFormat
from backcast.model.request import Request
from backcast.model.states import RunState
from backcast.spark.processes import is_alive
from backcast.testing.kafka_records import Record
from backcast.testing.kafka_topics import wait_until
from backcast.testing.orders import FIRST, Orders, rows_of, spread
from tests.cheap import cheap
from tests.crash.process import RealLife, SparkProcess

ICEBERG, DELTA = TableFormat.ICEBERG, TableFormat.DELTA
SENT = list(spread(3, 12))
LIVE = (1000, "2026-01-02", "9.00")
EVERYTHING = Request(pipeline="orders", offsets="earliest", requested_by="tests")
MERGED = """\
SELECT coalesce(id, CAST(CAST(_kafka.key AS STRING) AS BIGINT)) AS id, shop, coalesce(at, _kafka.timestamp) AS at,
       amount, to_date(coalesce(at, _kafka.timestamp)) AS day, _kafka.value IS NULL AS gone
FROM orders
"""
WAITING = """\
import time
from pathlib import Path

from pyspark.sql import functions as F

import backcast

FOLDER = Path(__file__).parent


@F.udf("string")
def shop_of(number, shop):
    if number == 13 and (FOLDER / "hold").exists():
        (FOLDER / "held").touch()
        while (FOLDER / "hold").exists():
            time.sleep(0.05)
    return shop


@backcast.transform(name="orders", version="1.0.0")
def orders(inputs, ctx):
    found = inputs["orders"].withColumn("shop", shop_of("id", "shop"))
    return found.select("id", "shop", "at", "amount", F.to_date("at").alias("day"))
"""


@pytest.fixture
def new_orders(new_orders: Callable[..., Orders], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Orders]:
    """Three slices, in jobs of their own; and one live row that no replay is about."""
    monkeypatch.setattr("backcast.sources.kafka.input._RECORDS_A_CHUNK", 12)

    def make(table_format: TableFormat, pipeline: str, source: str = "") -> Orders:
        made = new_orders(table_format=table_format)
        made.configure(source=source, pipeline=f"chunks_per_job: 1\n{pipeline}")
        made.send(SENT)
        made.spark.sql(
            f"INSERT INTO {made.table} VALUES (1000, 'S', TIMESTAMP'2026-02-01 00:00:00Z', 9, DATE'2026-01-02')"
        )
        return made

    return make


@pytest.fixture
def new_life() -> Iterator[Callable[[Orders, Request], RealLife]]:
    """A planned run whose commands are processes."""
    lives: list[RealLife] = []

    def plan(orders: Orders, request: Request) -> RealLife:
        life = RealLife(orders, None, topics=True)  # type: ignore[arg-type]  # of a shop and its lake only the folder is needed here
        lives.append(life)
        found = orders.open().plan(request)
        assert not found.refused, found.findings
        life.run_id = found.run_id
        return life

    yield plan
    for life in lives:
        life.close()


def proven(orders: Orders, run_id: str) -> str:
    verdict = orders.open().world.reader().verdict(run_id)
    assert verdict is not None
    assert verdict.accepted, [each for each in verdict.checks if not each.passed]
    return next(check.detail for check in verdict.checks if check.name == "offsets covered")


def test_an_append_goes_through_kills(
    new_orders: Callable[..., Orders], new_life: Callable[[Orders, Request], RealLife]
) -> None:
    """It removes nothing, so nothing but its tokens and its fence keeps a repeat from doubling rows."""
    orders = new_orders(ICEBERG, "publish: {mode: append}")
    life = new_life(orders, EVERYTHING)
    life.kill("run", "chunk.after-commit#2:jvm")
    life.repeat("run")
    assert proven(orders, life.run_id) == "36 offsets of 3 partitions: 36 rows"
    for kill in ("publish.before-commit:python", "publish.after-commit:both"):
        life.kill("publish", kill)
    life.repeat("publish")
    assert life.state is RunState.PUBLISHED
    assert orders.rows() == rows_of(SENT, "2026-01-01", "2026-02-01") + Counter([LIVE])
    life.check_ledger()


def test_a_merge_with_deletes_goes_through_kills(
    new_orders: Callable[..., Orders], new_life: Callable[[Orders, Request], RealLife]
) -> None:
    orders = new_orders(DELTA, "publish: {mode: merge, deletes: gone}", "tombstones: rows")
    (orders.root / "models" / "orders.sql").write_text(MERGED)
    late = int((FIRST + timedelta(days=4)).timestamp() * 1000)
    gone = [each.id for each in SENT[::5]]
    orders.broker.produce(orders.topic, [Record(None, str(each), late) for each in gone])
    life = new_life(orders, EVERYTHING)
    for kill in ("chunk.before-commit:jvm", "chunk.after-commit:python"):
        life.kill("run", kill)
    life.repeat("run")
    assert proven(orders, life.run_id) == "44 offsets of 3 partitions: 36 rows, 8 tombstones"
    for kill in ("publish.before-commit:both", "publish.after-commit:jvm"):
        life.kill("publish", kill)
    life.repeat("publish")
    kept = [each for each in SENT if each.id not in gone]
    assert orders.rows() == rows_of(kept, "2026-01-01", "2026-02-01") + Counter([LIVE])
    life.check_ledger()


@pytest.mark.parametrize(("table_format", "mode"), [(ICEBERG, "replace"), (DELTA, "replace"), (DELTA, "append")])
def test_a_replay_dies_while_its_tasks_read_the_topic(
    new_orders: Callable[..., Orders],
    new_life: Callable[[Orders, Request], RealLife],
    table_format: TableFormat,
    mode: str,
) -> None:
    """Replace: Python and JVM are killed. Append: Python alone, and what its JVM still writes counts for nothing."""
    orders = new_orders(table_format, f"publish: {{mode: {mode}}}")
    folder = orders.root / "pipelines"
    folder.mkdir()
    (folder / "orders.py").write_text(WAITING)
    file = orders.root / "backcast.yaml"
    file.write_text(file.read_text().replace("sql: models/orders.sql", "transform: pipelines.orders:orders"))
    window = mode == "replace"
    life = new_life(orders, orders.request("2026-01-01", "2026-01-04") if window else EVERYTHING)
    hold = folder / "hold"
    hold.touch()
    with SparkProcess(orders.root, settings=cheap(table_format, topics=True)) as process:
        process.send("run", run_id=life.run_id)
        try:
            wait_until((folder / "held").exists, "a task waits in the middle of its records", 120)
        except TimeoutError:
            process.process.kill()
            process.answer()
            raise
        jvm = life.jvm()
        life.orphans.append(jvm)
        process.process.kill()
        assert jvm is not None
        if window:
            os.kill(jvm.pid, signal.SIGKILL)
    hold.unlink()
    life.repeat("run", "publish")
    assert not is_alive(jvm)
    told = proven(orders, life.run_id)
    assert told.startswith(f"36 offsets of 3 partitions: 36 {'in the window' if window else 'rows'}"), told
    kept = Counter() if window else Counter([LIVE])
    assert orders.rows() == rows_of(SENT, "2026-01-01", "2026-02-01") + kept
    life.check_ledger()
