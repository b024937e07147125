"""Mistakes that backfills of topics are known for, each tried here; other files of this folder try the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from backcast.control import ControlPlane
from backcast.model.pipeline import TableFormat
from backcast.model.request import Request
from backcast.testing.orders import FIRST, Order, Orders, rows_of, spread

SENT = list(spread(2, 10))


def append(control: ControlPlane, **asked: str) -> None:
    control.backfill(Request(pipeline="orders", reason="a gap", requested_by="tests", **asked))


def test_a_second_backfill_is_not_taken_for_the_first(new_orders: Callable[..., Orders]) -> None:
    """Delta skips in silence what comes with a transaction that it has seen. Each of these runs is another one."""
    orders = new_orders(partitions=1, table_format=TableFormat.DELTA)
    orders.configure(pipeline="publish: {mode: append}")
    orders.send(SENT, partition=0)
    append(orders.open(), offsets="0=0..8")
    append(orders.open(), offsets="0=8..12")
    assert orders.rows() == rows_of(SENT[:12], "2026-01-01", "2026-02-01")
    append(orders.open(), offsets="0=10..14")
    asked = [*SENT[:12], *SENT[10:14]]
    assert orders.rows() == rows_of(asked, "2026-01-01", "2026-02-01"), "what was asked for twice is there twice"


def test_a_replay_from_where_a_stream_stands_leaves_its_checkpoint_alone(
    new_orders: Callable[..., Orders], tmp_path: Path
) -> None:
    """A real stream, stopped. It goes on afterwards with the records that it had not read, no more and no fewer."""
    orders, checkpoint = new_orders(partitions=2), tmp_path / "checkpoint"
    orders.configure(pipeline="publish: {mode: append}")
    orders.send(SENT)
    seen: Counter[int] = Counter()

    def stream() -> None:
        options = {"kafka.bootstrap.servers": orders.broker.servers, "subscribe": orders.topic}
        source = orders.spark.readStream.format("kafka").options(**options, startingOffsets="earliest").load()
        keys = source.selectExpr("CAST(CAST(key AS STRING) AS INT) AS id")
        writer = keys.writeStream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        writer.foreachBatch(lambda rows, _: seen.update(row["id"] for row in rows.collect())).start().awaitTermination()

    stream()
    assert seen == Counter(each.id for each in SENT)
    later = [Order(100 + number, FIRST + timedelta(days=5, hours=number)) for number in range(7)]
    orders.send(later)
    files = {each: each.read_bytes() for each in checkpoint.rglob("*") if each.is_file()}
    append(orders.open(), checkpoint=str(checkpoint))
    assert orders.rows() == rows_of(later, "2026-01-01", "2026-02-01")
    assert {each: each.read_bytes() for each in checkpoint.rglob("*") if each.is_file()} == files
    stream()
    assert seen == Counter(each.id for each in [*SENT, *later])
