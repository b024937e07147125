"""A stream that somebody else runs, on its own checkpoint: what we say about its sink is what its sink does."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from backcast.errors import Conflict, InvalidRequest, LeaseHeld, Refused
from backcast.model.checkpoint import SinkOutcome
from backcast.model.pipeline import TableFormat
from backcast.ports.streams import LiveWrite
from backcast.run.lease import acquire
from backcast.testing.orders import Order, Orders, rows_of, spread
from backcast.verbs.checkpoints import SinkChoice, Where
from tests.unit.checkpoints import QUERY, new_checkpoint

SINK, UNCHECKED = SinkChoice(), SinkChoice(unchecked=True)
ALL = ("2026-01-01", "2026-02-01")


def declare(orders: Orders, *, external: bool, source: str = "") -> None:
    orders.configure(source=source, stream=f"external: {str(external).lower()}")
    config = orders.root / "backcast.yaml"
    config.write_text(config.read_text().replace(".checkpoints/live", "checkpoint"))


def stream(orders: Orders, checkpoint: Path, per_batch: int, *beside: str, plainly: bool = False) -> None:
    """As anybody would write it: Spark's own sink, or plain appends of each batch; nothing of ours. `beside`: further
    columns, of the record itself.
    """
    from pyspark.sql import functions as F

    records = (
        orders.spark.newSession()
        .readStream.format("kafka")
        .option("kafka.bootstrap.servers", orders.broker.servers)
        .option("subscribe", orders.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", per_batch)
        .load()
    )
    schema = "id BIGINT, shop STRING, at TIMESTAMP, amount DECIMAL(10,2)"
    value = F.from_json(F.col("value").cast("string"), schema)
    rows = records.select(value.alias("v"), *beside).select("v.*", F.to_date("v.at").alias("day"), *beside)
    writer = rows.writeStream.format(orders.format).option("checkpointLocation", str(checkpoint))
    writer = writer.trigger(availableNow=True)
    delta = orders.format is TableFormat.DELTA
    if plainly:
        query = writer.foreachBatch(lambda batch, _: batch.write.insertInto(orders.table)).start()
    else:
        query = writer.start(f"{orders.root}/lake/orders") if delta else writer.toTable(orders.table)
    query.awaitTermination()


def _what_is_said_to_be_taken_twice_is(orders: Orders, fork: Path, sent: list[Order], again: list[Order]) -> None:
    """By a fork into the same table, and once more by a rewind of it, as long as it appends without Spark's sink."""
    control = orders.open()
    forked = control.checkpoint_fork("live", str(fork), Where(batch=1), sink=SINK)
    assert forked.sink is not None
    assert forked.sink.outcome is SinkOutcome.DUPLICATE
    assert forked.sink.reason.startswith("3 batches that were committed run once more, under an id that")
    stream(orders, fork, per_batch=1000, plainly=True)
    assert orders.rows() == rows_of([*sent, *again], *ALL)
    back = control.checkpoint_rewind(str(fork), Where(batch=1), sink=SinkChoice("orders_by_day"), stopped=True)
    assert back.sink is not None
    assert back.sink.outcome is SinkOutcome.DUPLICATE
    assert back.sink.reason.endswith("or written by foreachBatch; 1 batches run once more")
    stream(orders, fork, per_batch=1000, plainly=True)
    assert orders.rows() == rows_of([*sent, *again, *again], *ALL)


@pytest.mark.parametrize("table_format", TableFormat)
def test_a_skip_is_refused_and_what_is_said_to_apply_applies(
    new_orders: Callable[..., Orders], table_format: TableFormat
) -> None:
    orders = new_orders(partitions=1, table_format=table_format)
    declare(orders, external=True)
    sent, checkpoint = list(spread(4, 20)), orders.root / "checkpoint"
    orders.send(sent, partition=0)
    stream(orders, checkpoint, per_batch=20)
    control = orders.open()

    found = control.checkpoint_inspect("live")
    assert (found.stream, found.planned, found.committed, found.damages) == ("live", 3, 3, 0)
    assert found.sources[0].topics == {orders.topic: {0: 80}}
    kept = control.checkpoint_backup(str(checkpoint))

    with pytest.raises(Conflict, match="last written to"):
        control.checkpoint_rewind("live", Where(batch=1), sink=SINK)
    with pytest.raises(Refused, match="batches 2 to 3 are in the table under this id: run again, they are") as refused:
        control.checkpoint_rewind("live", Where(batch=1), sink=SINK, stopped=True)
    assert "backcast backfill" in refused.value.hint
    assert control.checkpoint_inspect("live").committed == 3

    # Who does it nevertheless loses rows, without a word: they come to stand in a batch that the table skips.
    more = [Order(900 + number, sent[-1].at) for number in range(10)]
    orders.send(more, partition=0)
    control.checkpoint_rewind("live", Where(batch=1), sink=UNCHECKED, stopped=True)
    stream(orders, checkpoint, per_batch=1000)
    assert orders.rows() == rows_of(sent, *ALL)

    back = control.checkpoint_restore("live", kept.path, sink=SINK, stopped=True)
    assert back.sink is not None
    assert (back.sink.outcome, back.sink.last_epoch, back.batch) == (SinkOutcome.APPLY, 3, 3)
    stream(orders, checkpoint, per_batch=1000)
    assert orders.rows() == rows_of([*sent, *more], *ALL)

    redo = orders.root / "redo"
    _what_is_said_to_be_taken_twice_is(orders, redo, [*sent, *more], [*sent[40:], *more])
    if table_format is TableFormat.ICEBERG:
        snapshot = refused.value.hint.partition("snapshot ")[2].partition(",")[0]
        name = orders.table.partition(".")[2]
        orders.spark.sql(f"CALL lake.system.rollback_to_snapshot('{name}', {snapshot})")
        applied = control.checkpoint_rewind("live", Where(batch=1), sink=SINK, stopped=True)
        assert applied.sink is not None
        assert applied.sink.outcome is SinkOutcome.APPLY
        redo = checkpoint
    else:
        # The third commit is the second batch: the first one made the table.
        orders.spark.sql(f"RESTORE TABLE {orders.table} TO VERSION AS OF 2")
        with pytest.raises(Refused, match="they are skipped"):
            control.checkpoint_rewind("live", Where(batch=1), sink=SINK, stopped=True)
        redo = orders.root / "anew"
        control.checkpoint_fork("live", str(redo), Where(batch=1), sink=SINK)
    stream(orders, redo, per_batch=1000)
    assert orders.rows() == rows_of([*sent, *more], *ALL)
    control.world.close()


def test_a_stream_of_ours_is_guarded_by_its_lease_and_a_foreign_one_needs_its_sink(
    new_orders: Callable[..., Orders],
) -> None:
    orders = new_orders(partitions=1)
    declare(orders, external=False)
    orders.send(spread(1, 4), partition=0)
    checkpoint, foreign = orders.root / "checkpoint", orders.root / "foreign"
    stream(orders, checkpoint, per_batch=2)
    control = orders.open()
    world = control.world
    with (
        acquire(world.store().leases, "stream/live", world.holder(), world.clock, lambda _: False),
        pytest.raises(LeaseHeld),
    ):
        control.checkpoint_rewind(str(checkpoint), Where(batch=0), sink=UNCHECKED)
    control.checkpoint_fork("live", str(foreign), Where(offset="0=2"), sink=UNCHECKED)
    with pytest.raises(InvalidRequest, match="which table does the stream write to"):
        control.checkpoint_rewind(str(foreign), Where(batch=0), sink=SINK, stopped=True)
    moved = control.checkpoint_rewind("live", Where(offset="0=3"), sink=UNCHECKED)
    assert (moved.batch, moved.stream) == (0, "live")
    control.world.close()


@pytest.mark.parametrize("table_format", TableFormat)
def test_a_stream_of_ours_is_remembered_by_its_table_longer_than_the_history_is(
    new_orders: Callable[..., Orders], table_format: TableFormat, tmp_path: Path
) -> None:
    """Compacted and expired, or its log cleaned: an old backup is no way back, and the start would say so too late."""
    orders = new_orders(partitions=1, table_format=table_format)
    declare(orders, external=False)
    new_checkpoint(orders.root / "checkpoint", batches=2)
    control = orders.open()
    backup = control.checkpoint_backup("live", to=str(tmp_path / "old"))
    new_checkpoint(orders.root / "checkpoint", batches=4)
    target = control.world.live_target(control.world.stream("live"))
    rows = orders.spark.table(orders.table).limit(0)
    row = orders.spark.sql("SELECT 1L id, 'S1' shop, TIMESTAMP'2026-01-01' at, 1.00BD amount, DATE'2026-01-01' day")
    row = row.withColumn("amount", row.amount.cast("decimal(10,2)")).unionByName(rows)
    for batch in range(4):
        target.write(LiveWrite("live", QUERY, batch, f"0={10 * batch}..{10 * batch + 10}", {}), row, lambda: None)

    def refused() -> str:
        with pytest.raises(Refused, match="has batch 3 of stream live, which does not start at batch 2") as error:
            control.checkpoint_restore("live", backup.path, sink=SINK)
        with pytest.raises(Refused, match="has batch 3 of stream live, which does not start at batch 1"):
            control.checkpoint_rewind("live", Where(batch=0), sink=SINK)
        return error.value.hint

    assert "backcast stream recover live" in refused()
    # A copy goes by no stream's name; the commits still name its query.
    shutil.copytree(orders.root / "checkpoint", tmp_path / "copy")
    copy, known = str(tmp_path / "copy"), SinkChoice("orders_by_day")
    with pytest.raises(Refused, match="batches 1 to 3 are in the table under this id"):
        control.checkpoint_rewind(copy, Where(batch=0), sink=known, stopped=True)
    if table_format is TableFormat.ICEBERG:
        name = f"table => '{orders.table.partition('.')[2]}'"
        orders.spark.sql(f"CALL lake.system.rewrite_data_files({name}, options => map('rewrite-all', 'true'))")
        before = "older_than => TIMESTAMP'2100-01-01', retain_last => 1"
        orders.spark.sql(f"CALL lake.system.expire_snapshots({name}, {before})")
        refused()
    assert control.checkpoint_inspect("live").committed == 3
    assert not list(orders.root.glob("checkpoint.before-*"))
    control.world.close()
