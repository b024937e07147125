"""What retention has removed is replayed from an archive, joined with the log at the exact offset."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from backcast.errors import ConfigError, Drifted, LeaseHeld, PlanRefused
from backcast.model.archiving import archive_lease_name
from backcast.model.log import Isolation, OffsetRange
from backcast.model.pipeline import TableFormat
from backcast.model.report import Plan
from backcast.model.request import Request
from backcast.model.states import RunState
from backcast.run.lease import acquire
from backcast.testing.orders import FIRST, Order, Orders, rows_of, spread

BOTH = pytest.mark.parametrize("table_format", TableFormat)
NewOrders = Callable[..., Orders]


def archived_orders(new_orders: NewOrders, table_format: TableFormat = TableFormat.ICEBERG, more: str = "") -> Orders:
    """Orders whose source has an archive, which is not there yet."""
    orders = new_orders(table_format=table_format)
    delta = table_format is TableFormat.DELTA
    place = "path: lake/archive" if delta else f"table: {archive_of(orders)}"
    orders.configure(source=f"archive: {{{place}}}\n{more}", pipeline="publish: {mode: append}" if more else "")
    return orders


def archive_of(orders: Orders) -> str:
    if orders.format is TableFormat.DELTA:
        return f"delta.`{orders.root}/lake/archive`"
    return orders.table.replace(".orders", ".archive")


def positions(orders: Orders) -> Counter[tuple[int, int]]:
    rows = orders.spark.table(archive_of(orders)).select("partition", "offset").collect()
    return Counter((row["partition"], row["offset"]) for row in rows)


def blocks(plan: Plan) -> dict[str, str]:
    return {each.code: each.reason for each in plan.findings if each.severity == "block"}


def ranges(found: tuple[OffsetRange, ...]) -> list[tuple[int, int, int]]:
    return [(each.partition, each.start, each.end) for each in found]


@BOTH
def test_a_window_that_retention_has_cut_is_replayed_from_archive_and_log(
    new_orders: NewOrders, table_format: TableFormat
) -> None:
    """And archiving again copies what is new, once, and says so when nothing is."""
    orders = archived_orders(new_orders, table_format)
    sent = list(spread(6, 20))
    orders.send(sent[:60], partition=0)
    orders.send_raw(None, at=FIRST + timedelta(days=3), partition=0)
    control = orders.open()
    first = control.archive("orders", requested_by="tests")
    assert (first.records, ranges(first.copied)) == (61, [(0, 0, 61)])
    orders.send(sent[60:], partition=0)
    orders.broker.delete_records(orders.topic, {0: 50})
    plan = control.plan(orders.request("2026-01-02", "2026-01-06"))
    assert not plan.refused, plan.findings
    log = plan.manifest.inputs[0].log
    assert log is not None
    assert log.archive is not None
    assert ranges(log.archive.ranges)[0][2] == 61
    assert ranges(log.from_log)[0][1] == 61
    run = control.run(plan.run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    verdict = control.world.reader().verdict(plan.run_id)
    assert verdict is not None
    covered = next(each for each in verdict.checks if each.name == "offsets covered")
    assert covered.passed
    assert "80 in the window" in covered.detail
    assert "1 tombstone" in covered.detail
    assert f" from the archive {archive_of(orders)}" in covered.detail
    control.publish(plan.run_id)
    assert orders.rows() == rows_of(sent, "2026-01-02", "2026-01-06")
    second = control.archive("orders")
    assert ranges(second.copied) == [(0, 61, 121)]
    assert control.archive("orders").runs == ()
    assert positions(orders) == Counter((0, offset) for offset in range(121))
    shown = orders.spark.table(archive_of(orders)).where("offset = 5").collect()[0]
    assert (bytes(shown["key"]), shown["topic"], shown["topic_id"]) == (b"5", orders.topic, log.topic_id)


def test_without_an_archive_the_plan_is_refused_and_names_what_is_missing(new_orders: NewOrders) -> None:
    """Also when the archive is behind; going on then has to be asked for, and leaves a hole that stays known."""
    orders = archived_orders(new_orders)
    sent = list(spread(6, 20))
    orders.send(sent[:40], partition=0)
    control = orders.open()
    control.archive("orders", until="2026-01-02")
    assert positions(orders) == Counter((0, offset) for offset in range(20))
    orders.send(sent[40:], partition=0)
    orders.broker.delete_records(orders.topic, {0: 45})
    behind = blocks(control.plan(orders.request("2026-01-01", "2026-01-05")))
    assert "offsets 0=20..45, and" in behind["log.partial"]
    with pytest.raises(PlanRefused, match=re.escape("offsets 0=20..45")):
        control.archive("orders")
    assert ranges(control.archive("orders", offsets="earliest").copied) == [(0, 45, 120)]
    orders.broker.delete_records(orders.topic, {0: 120})
    hole = blocks(control.plan(orders.request("2026-01-01", "2026-01-05")))
    assert "0=20.." in hole["log.archive-holes"]
    inside = blocks(control.plan(orders.request("2026-01-03", "2026-01-04")))
    assert "offsets 0=20..45, and" in inside["log.partial"]
    later = control.plan(orders.request("2026-01-05", "2026-01-07"))
    assert not later.refused, later.findings
    orders.configure()
    alone = blocks(orders.open().plan(orders.request("2026-01-01", "2026-01-05")))
    assert "offsets 0=0..120" in alone["log.gone"]


def test_a_damaged_archive_is_noticed(new_orders: NewOrders) -> None:
    """A row that is missing: the log takes over if it can. One that is there twice: the run is rejected."""
    orders = archived_orders(new_orders)
    sent = list(spread(3, 20))
    orders.send(sent, partition=0)
    control, table, day = orders.open(), archive_of(orders), orders.request("2026-01-02", "2026-01-03")
    control.archive("orders")
    orders.spark.sql(f"INSERT INTO {table} SELECT * FROM {table} WHERE offset = 25")
    doubled = control.run(control.plan(day).run_id)
    assert doubled.state is RunState.REJECTED
    assert "1 offset read twice" in doubled.detail
    control.cancel(doubled.run_id)
    orders.spark.sql(f"DELETE FROM {table} WHERE offset = 30")
    both = control.run(control.plan(day).run_id)
    assert both.state is RunState.REJECTED
    assert "no record at 1 offset, the first is 30" in both.detail
    control.cancel(both.run_id)
    orders.spark.sql(f"DELETE FROM {table} WHERE offset = 25")
    plan = control.plan(day)
    log = plan.manifest.inputs[0].log
    assert log is not None
    assert log.archive is not None
    assert ranges(log.archive.ranges)[0][2] == 25
    orders.broker.delete_records(orders.topic, {0: 60})
    refused = control.plan(day)
    assert "0=25.." in blocks(refused)["log.archive-holes"]
    orders.spark.sql(f"CALL lake.system.expire_snapshots('{table}', TIMESTAMP '2100-01-01 00:00:00', 1)")
    first = control.plan(orders.request("2026-01-01", "2026-01-02"))
    assert not first.refused, first.findings
    orders.spark.sql(f"DELETE FROM {table} WHERE offset = 31")
    orders.spark.sql(f"CALL lake.system.expire_snapshots('{table}', TIMESTAMP '2100-01-01 00:00:00', 1)")
    with pytest.raises(Drifted, match="is gone"):
        control.run(first.run_id)


def test_files_that_somebody_else_wrote_are_an_archive_too(new_orders: NewOrders, tmp_path: Path) -> None:
    """With other names of columns, and with columns in names of folders. They are pinned one by one."""
    orders = new_orders()
    sent = list(spread(4, 20))
    orders.send(sent, partition=1)
    kafka = orders.spark.read.format("kafka").option("kafka.bootstrap.servers", orders.broker.servers)
    records = kafka.option("subscribe", orders.topic).option("includeHeaders", "true").load()
    sink = tmp_path / "sink"
    columns = ["topic", "partition", "offset AS kafka_offset", "timestamp", "key", "CAST(value AS STRING) AS value"]
    written = records.where("offset < 50").selectExpr(*columns, "headers").coalesce(1).write
    written.partitionBy("topic", "partition").parquet(str(sink))
    orders.broker.delete_records(orders.topic, {1: 40})
    orders.configure(source="archive: {files: sink}")
    with pytest.raises(ConfigError, match="has no column offset"):
        orders.open().plan(orders.request())
    orders.configure(source="archive: {files: sink, columns: {offset: kafka_offset}}")
    control = orders.open()
    control.backfill(orders.request("2026-01-01", "2026-01-05"))
    assert orders.rows() == rows_of(sent, "2026-01-01", "2026-01-05")
    with pytest.raises(Exception, match="an archive of files, which somebody else writes"):
        control.archive("orders")
    plan = control.plan(orders.request("2026-01-02", "2026-01-04"))
    (file,) = sink.rglob("*.parquet")
    file.with_name(f"{file.stem}-new.parquet").write_bytes(file.read_bytes())
    file.unlink()
    with pytest.raises(Drifted, match="is gone"):
        control.run(plan.run_id)


def test_one_process_at_a_time_archives_a_topic(new_orders: NewOrders) -> None:
    orders = archived_orders(new_orders)
    orders.send(spread(1, 10), partition=0)
    control = orders.open()
    world = control.world
    lease = archive_lease_name(archive_of(orders))
    with acquire(world.store().leases, lease, world.holder(), world.clock, world.ended), pytest.raises(LeaseHeld):
        control.archive("orders")
    assert control.archive(orders.topic).records == 10


def test_transactions_and_a_topic_that_was_made_again(new_orders: NewOrders) -> None:
    """Markers are told from records that are missing by what runs have copied; records of the old topic stay out."""
    orders = archived_orders(new_orders, more="transactional: true")
    sent = list(spread(2, 10))
    orders.broker.transaction(orders.topic, [each.record(0) for each in sent])
    orders.broker.transaction(orders.topic, [Order(99, FIRST).record(0)], commit=False)
    control = orders.open()
    first = control.archive("orders")
    assert (first.records, ranges(first.copied)) == (20, [(0, 0, 23)])
    assert control.archive("orders").runs == ()
    orders.broker.delete_records(orders.topic, {0: 23})
    request = Request(pipeline="orders", record_time="2026-01-01..2026-01-02", requested_by="tests")
    plan = control.plan(request)
    assert not plan.refused, plan.findings
    log = plan.manifest.inputs[0].log
    assert log is not None
    assert (log.isolation, ranges(log.ranges)) == (Isolation.COMMITTED, [(0, 0, 10)])
    everything = Request(pipeline="orders", offsets="earliest", requested_by="tests")
    control.backfill(everything)
    assert orders.rows() == rows_of(sent, "2026-01-01", "2026-02-01")
    orders.spark.sql(f"DELETE FROM {archive_of(orders)} WHERE offset = 5")
    assert "0=0..23" in blocks(control.plan(everything))["log.archive-holes"]
    orders.broker.delete_topic(orders.topic)
    orders.broker.create_topic(orders.topic, 3)
    orders.send([Order(7, FIRST)], partition=0)
    anew = control.plan(everything).manifest.inputs[0].log
    assert anew is not None
    assert [each for each in ranges(anew.ranges) if each[1] < each[2]] == [(0, 0, 1)]
    assert anew.archive is not None
    assert anew.archive.ranges == ()
