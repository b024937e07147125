"""Rows that stateful streams really dropped: found, told apart from what is only on its way, and added by a plan."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from backcast.cli.render.late import render_late
from backcast.model.pipeline import TableFormat
from backcast.model.request import Request
from backcast.model.states import RunState
from backcast.testing.orders import FIRST, Order, Orders, rows_of
from tests.unit.cli_screens import shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.control import ControlPlane
    from backcast.model.late import LateReport

WHY = Request(pipeline="", reason="phones were offline", requested_by="tests")
_VALUE = "id BIGINT, shop STRING, at TIMESTAMP, amount DECIMAL(10,2)"


def order(number: int, minutes: int) -> Order:
    """One that is written when the test sends it, whatever its own time."""
    return Order(
        number, FIRST + timedelta(minutes=minutes), late=timedelta(hours=6, minutes=number) - timedelta(minutes=minutes)
    )


def read(orders: Orders, transform: Callable[[DataFrame], DataFrame], table: str) -> None:
    """What the stream does with what is there now: plain PySpark, in a session of its own."""
    session = orders.spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "1")
    options = {
        "kafka.bootstrap.servers": orders.broker.servers,
        "subscribe": orders.topic,
        "startingOffsets": "earliest",
    }
    raw = session.readStream.format("kafka").options(**options).load()
    rows = raw.selectExpr(f"from_json(CAST(value AS STRING), '{_VALUE}') AS v").select("v.*")
    writer = transform(rows.withWatermark("at", "10 minutes")).writeStream.format(orders.format)
    writer = writer.option("checkpointLocation", str(orders.root / "live")).trigger(availableNow=True)
    query = writer.start(table.strip("`").removeprefix("delta.`")) if table.endswith("`") else writer.toTable(table)
    assert query.awaitTermination(120)


def declare(orders: Orders) -> ControlPlane:
    """Somebody else runs the stream, and its checkpoint lies where `read` has it."""
    config = orders.root / "backcast.yaml"
    config.write_text(config.read_text().replace(".checkpoints/live", "live\n    external: true"))
    return orders.open()


def found(report: LateReport) -> list[tuple[str, int, int, int, int]]:
    return [
        (f"{each.window.start:%d %H}", each.late, each.pending, each.missing, each.unknown) for each in report.pieces
    ]


def published(control: ControlPlane, report: LateReport) -> None:
    (fix,) = report.plans
    assert fix.recorded, fix.problem
    run = control.run(fix.run_id)
    assert run.state is RunState.ACCEPTED, run.detail
    control.publish(fix.run_id)


def by_hour(orders: Orders, sql: str) -> str:
    """The project counts orders by hour and shop, into this table."""
    table = f"{orders.table}_hourly"
    orders.spark.sql(
        f"CREATE TABLE {table} (hour TIMESTAMP, shop STRING, orders BIGINT) USING iceberg PARTITIONED BY (hours(hour))"
    )
    config = orders.root / "backcast.yaml"
    text = config.read_text().replace(f"table: {orders.table}", f"table: {table}").replace("    version: at\n", "")
    text = text.replace("{column: day, kind: date}", "{column: hour, kind: timestamp}").replace(
        "grain: day", "grain: hour"
    )
    config.write_text(text.replace("key: [id]", "key: [hour, shop]"))
    (orders.root / "models" / "orders.sql").write_text(sql)
    return table


def test_late_records_of_an_aggregating_stream_are_found_exactly_and_gone_after_the_planned_run(
    new_orders: Callable[..., Orders],
) -> None:
    orders = new_orders(partitions=1, source="slack: {after: 12h}")
    table = by_hour(
        orders, "SELECT date_trunc('HOUR', at) AS hour, shop, count(*) AS orders FROM orders GROUP BY 1, 2\n"
    )
    control = declare(orders)

    def hourly(rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        windows = rows.groupBy(F.window("at", "1 hour").alias("w"), "shop").agg(F.count("*").alias("orders"))
        return windows.select(F.col("w.start").alias("hour"), "shop", "orders")

    for sent in ([(1, 5), (2, 15), (3, 25)], [(4, 150)], [(5, 45), (6, 50), (7, 160)], [(8, 270)]):
        orders.send([order(*each) for each in sent])
        read(orders, hourly, table)
    orders.send([order(9, 155)])

    report = control.late("live")
    assert report.by == "pieces"
    assert found(report) == [("01 00", 2, 0, 0, 0), ("01 02", 0, 1, 0, 0), ("01 04", 0, 0, 0, 0)]
    assert [each.is_open for each in report.pieces] == [False, False, True]
    (request,) = report.requests
    assert (request.start, request.end) == ("2026-01-01T00:00Z", "2026-01-01T01:00Z")
    assert control.stream_lag("live").behind == 1

    published(control, control.late("live", why=WHY, plan=True))
    after = control.late("live")
    assert found(after) == [("01 02", 0, 1, 0, 0), ("01 04", 0, 0, 0, 0)]
    assert after.sound
    read(orders, hourly, table)
    report = control.late("live", start="2026-01-01", end="2026-01-01T04:00", why=WHY, plan=True)
    assert found(report) == [("01 02", 1, 0, 0, 0)], "what was pending has become late"
    published(control, report)
    assert control.late("live", end="2026-01-01T04:00", start="2026-01-01").pieces == ()
    rows = orders.spark.sql(f"SELECT hour(hour), orders FROM {table} ORDER BY 1").collect()
    assert [tuple(row) for row in rows] == [(0, 5), (2, 3)]


def test_records_are_late_when_their_window_is_closed_and_spark_counts_groups_of_them(
    new_orders: Callable[..., Orders],
) -> None:
    """Run here: what Spark counted is on record. Two records to a batch; those of minutes 10 and 11 come behind the
    watermark, and into a window that is open.
    """
    orders = new_orders(partitions=1)
    orders.configure(source="slack: {after: 12h}", stream="most_per_trigger: 2\nwatermark: {column: at, delay: 10m}")
    by_hour(
        orders,
        "SELECT window.start AS hour, shop, count(*) AS orders FROM orders GROUP BY window(at, '1 hour'), shop\n",
    )
    minutes = (5, 25, 50, 51, 52, 53, 10, 11, 150, 151, 152, 153, 45, 46, 47, 154)
    orders.send([order(*each) for each in enumerate(minutes)])
    control = orders.open()
    control.stream_start("live", once=True)
    report = control.late("live", end="2026-01-01T02:00", start="2026-01-01")
    assert found(report) == [("01 00", 3, 0, 0, 0)]
    assert (report.rows, report.expected) == (1, 1)
    assert report.by_spark is not None
    assert (report.by_spark.rows, report.by_spark.first) == (2, 0)
    assert "3 records came after the watermark" in shown(render_late(report), 160)
    assert "Spark's own count of batches 0 to" in shown(render_late(report), 160)


def test_rows_that_can_be_traced_are_told_one_by_one_and_appended_by_their_offsets(
    new_orders: Callable[..., Orders],
) -> None:
    """On Delta, with a stream that drops repeated orders, and with them whatever is later than it remembers."""
    orders = new_orders(partitions=1, table_format=TableFormat.DELTA)
    orders.configure(source="slack: {after: 12h}", pipeline="publish: {mode: append}")
    control = declare(orders)
    columns = ("id", "shop", "at", "amount", "to_date(at) AS day")

    def once(rows: DataFrame) -> DataFrame:
        return rows.dropDuplicates(["id", "at"]).selectExpr(*columns)

    batches = [[(1, 5), (2, 15), (3, 25)], [(4, 150)], [(5, 45), (6, 160), (7, 50)]]
    sent = [[order(*each) for each in some] for some in batches]
    for some in sent:
        orders.send(some)
        read(orders, once, orders.table)
    every = [each for some in sent for each in some]
    report = control.late("live")
    assert (report.by, found(report)) == ("key", [("01 00", 2, 0, 0, 0)])
    assert report.requests[0].offsets == "0=4..5,0=6..7"

    orders.spark.sql(f"DELETE FROM {orders.table} WHERE id = 2")
    pending = order(8, 170)
    orders.send([pending])
    report = control.late("live", why=WHY, plan=True)
    assert found(report) == [("01 00", 2, 1, 1, 0)]
    assert report.requests[0].offsets == "0=1..2,0=4..5,0=6..7"
    assert report.requests[0].reason == "2 late records, 1 missing row of stream live: phones were offline"
    published(control, report)
    assert orders.rows() == rows_of(every, "2026-01-01", "2026-01-02")
    after = control.late("live")
    assert (after.sound, found(after)) == (True, [("01 00", 0, 1, 0, 0)])
    read(orders, once, orders.table)
    assert control.late("live").pieces == ()

    orders.spark.sql(f"DELETE FROM {orders.table} WHERE id = 5")
    for folder in ("offsets", "commits"):
        for old in range(4):
            (orders.root / "live" / folder / str(old)).unlink()
    assert found(control.late("live")) == [("01 00", 0, 0, 0, 1)], "the checkpoint has forgotten when it was read"
