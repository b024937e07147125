"""Live streams, run in this process: the same transform over the endless topic, each record in the table once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest

from backcast.control import ControlPlane
from backcast.errors import ChunkFailed, InvalidRequest, LeaseHeld, QuarantineFull, Refused, StateConflict
from backcast.faults import STREAM_POINTS
from backcast.model.live import LiveBatch, LiveState, Stop, StreamStatus, freeze_lease, stream_lease
from backcast.model.pipeline import TableFormat
from backcast.model.report import Progress
from backcast.model.states import RunState
from backcast.model.stream_backfill import BACKED_UP, DONE, PLANNED, STOPPED
from backcast.testing.faults import at_point
from backcast.testing.kafka_topics import wait_until
from backcast.testing.orders import FIRST, Order, Orders, rows_of, spread

ICEBERG, DELTA = TableFormat.ICEBERG, TableFormat.DELTA
BOTH = pytest.mark.parametrize("table_format", [ICEBERG, DELTA])
SENT = list(spread(3, 10))
EVERYTHING = ("2026-01-01", "2026-02-01")


def caught_up(orders: Orders, **how: bool) -> StreamStatus:
    with closing(orders.open().world) as world:
        return ControlPlane(world).stream_start("live", once=True, **how)


@BOTH
def test_a_stream_reads_every_record_once_and_goes_on_where_it_stopped(
    new_orders: Callable[..., Orders], table_format: TableFormat
) -> None:
    orders = new_orders(table_format=table_format)
    orders.configure(stream="most_per_trigger: 8")
    orders.send(SENT[:20])
    first = caught_up(orders)
    orders.send(SENT[20:])
    second = caught_up(orders)
    assert orders.rows() == rows_of(SENT, *EVERYTHING)
    assert first.live is not None
    assert second.live is not None
    assert second.live.state is LiveState.STOPPED
    assert first.live.query_id == second.live.query_id
    assert not second.alive
    newest = second.batches[0]
    assert (newest.landed, newest.lag) == (True, 0)
    assert newest.batch >= 3, "a batch takes no more records than it may"
    assert sum(each.end for each in newest.offsets) == len(SENT)
    with closing(orders.open().world) as world:
        found = world.stream_reader().batches("live", 100)
        assert sum(each.rows_out for each in found) == sum(each.rows_in or 0 for each in found) == len(SENT)
        told = world.target("orders_by_day").properties(newest.version or "")
    assert (told["backcast.stream"], told["backcast.batch"]) == ("live", str(newest.batch))
    assert told["backcast.query"] == second.live.query_id
    assert told["backcast.offsets"].startswith("0=")


@BOTH
def test_a_batch_that_died_anywhere_is_in_the_table_once_whatever_others_clean_meanwhile(
    new_orders: Callable[..., Orders], table_format: TableFormat
) -> None:
    """Compaction and expiry take away every trace of a batch but the tag, or the transaction id, of the stream."""
    orders = new_orders(table_format=table_format)
    pieces = [SENT[start::6] for start in range(6)]
    for point, piece in zip(STREAM_POINTS, pieces, strict=False):
        orders.send(piece)
        with at_point(point, die), pytest.raises(Died):
            caught_up(orders)
        if point == "stream.after-commit":
            _clean(orders)
    orders.send(pieces[-1])
    assert caught_up(orders).state == "stopped"
    assert orders.rows() == rows_of(SENT, *EVERYTHING)


class Died(RuntimeError):
    """In place of the process."""


def die() -> None:
    raise Died("killed here")


def _clean(orders: Orders) -> None:
    """What a maintenance job does to the table at night."""
    if orders.format is DELTA:
        orders.spark.sql(f"OPTIMIZE {orders.table}")
        return
    table, catalog = orders.table.removeprefix("lake."), "lake"
    options = "options => map('rewrite-all', 'true')"
    orders.spark.sql(f"CALL {catalog}.system.rewrite_data_files(table => '{table}', {options})")
    later = "TIMESTAMP '2030-01-01 00:00:00'"
    orders.spark.sql(f"CALL {catalog}.system.expire_snapshots(table => '{table}', older_than => {later})")


@BOTH
def test_a_merge_keeps_the_newer_row_of_each_key_and_lands_once_wherever_it_dies(
    new_orders: Callable[..., Orders], table_format: TableFormat
) -> None:
    """And each row says which batch it came with, where the table has columns for it."""
    orders = new_orders(table_format=table_format)
    orders.configure(stream="write: merge", pipeline="lineage_columns: true")
    lineage = "produced_by_run_id STRING, processing_mode STRING, input_snapshot_id STRING"
    orders.spark.sql(f"ALTER TABLE {orders.table} ADD COLUMNS ({lineage})")
    hour = timedelta(hours=1)
    orders.send([Order(1, FIRST + hour, "1.00"), Order(1, FIRST + 2 * hour, "2.00"), Order(2, FIRST, "1.00")])
    caught_up(orders)
    assert sorted(orders.rows()) == [(1, "2026-01-01", "2.00"), (2, "2026-01-01", "1.00")]
    orders.send([Order(1, FIRST, "0.50"), Order(2, FIRST + hour, "3.00"), Order(3, FIRST, "4.00")])
    with at_point("stream.before-commit", die), pytest.raises(Died):
        caught_up(orders)
    assert sorted(orders.rows()) == [(1, "2026-01-01", "2.00"), (2, "2026-01-01", "1.00")]
    with at_point("stream.after-commit", die), pytest.raises(Died):
        caught_up(orders)
    wanted = [(1, "2026-01-01", "2.00"), (2, "2026-01-01", "3.00"), (3, "2026-01-01", "4.00")]
    assert sorted(orders.rows()) == wanted
    status = caught_up(orders)
    assert sorted(orders.rows()) == wanted
    newest = status.batches[0]
    assert (newest.rows_in, newest.rows_out) == (3, 2), "it landed before the process died, and not once more"
    columns = "id, produced_by_run_id, processing_mode, input_snapshot_id"
    stamps = {row[0]: tuple(row)[1:] for row in orders.spark.sql(f"SELECT {columns} FROM {orders.table}").collect()}
    first, second = (
        ("stream:live", "LIVE", f"kafka:{orders.topic}@{_told(each)}") for each in reversed(status.batches)
    )
    assert stamps == {1: first, 2: second, 3: second}


def _told(batch: LiveBatch) -> str:
    return ",".join(f"{each.partition}={each.start}..{each.end}" for each in batch.offsets)


def test_a_record_that_cannot_be_decoded_stops_the_stream_or_is_set_aside_once(
    new_orders: Callable[..., Orders], namespace: str
) -> None:
    orders = new_orders(partitions=1)
    orders.send(SENT[:5])
    orders.send_raw(b"{broken")
    with pytest.raises(ChunkFailed, match=r"1 record of topic .* cannot be decoded.*partition 0, offset 5") as told:
        caught_up(orders)
    assert "backcast stream start live" in told.value.hint
    assert orders.rows() == Counter(), "nothing of the batch landed"
    with closing(orders.open().world) as world:
        status = ControlPlane(world).stream_status("live")
    assert (status.state, status.next) == ("failed", told.value.hint)
    orders.configure(source=f"quarantine: {{table: {namespace}.aside, most: 1}}")
    with at_point("stream.before-commit", die), pytest.raises(Died):
        caught_up(orders)
    assert caught_up(orders).batches[0].set_aside == 1
    assert orders.rows() == rows_of(SENT[:5], *EVERYTHING)
    kept = orders.spark.sql(f"SELECT run_id, partition, offset FROM {namespace}.aside").collect()
    assert [tuple(row) for row in kept] == [("stream:live", 0, 5)]
    orders.send_raw(b"{broken too")
    with pytest.raises(QuarantineFull, match="after 1 in other batches, and 1 are allowed in this stream"):
        caught_up(orders)


def test_what_cannot_be_streamed_is_refused_in_words(new_orders: Callable[..., Orders]) -> None:
    orders = new_orders()
    file = orders.root / "models" / "orders.sql"
    query = file.read_text()
    file.write_text(query + " WHERE id IN (SELECT max(id) FROM orders)\n")
    with pytest.raises(ChunkFailed, match="Streaming query is not allowed in subquery") as told:
        caught_up(orders)
    assert "backcast stream start live" in told.value.hint
    file.write_text(query + " ORDER BY id\n")
    with pytest.raises(Refused, match=r"Spark does not run models/orders\.sql as a stream: ") as told:
        caught_up(orders)
    assert "backcast backfill orders" in told.value.hint
    file.write_text(query.replace("shop, at", "at"))
    with pytest.raises(Refused, match="missing"):
        caught_up(orders)
    orders.configure(stream="external: true")
    with pytest.raises(InvalidRequest, match="stream live is run by somebody else"):
        caught_up(orders)


def test_a_checkpoint_that_is_not_the_streams_own_is_refused(new_orders: Callable[..., Orders]) -> None:
    orders = new_orders(partitions=1)
    orders.send(SENT[:10])
    caught_up(orders)
    folder = orders.root / ".checkpoints" / "live"
    folder.rename(folder.with_name("kept"))
    orders.send(SENT[10:])
    with pytest.raises(Refused, match=r"the table has stream live up to 0=10, and the query would go on at earliest"):
        caught_up(orders)
    start = json.dumps({orders.topic: {"0": 10}})
    orders.configure(stream=f"starting: '{start}'")
    first = caught_up(orders)
    assert orders.rows() == rows_of(SENT, *EVERYTHING), "it went on exactly where the table ends"
    assert first.batches[0].batch == 0
    folder.rename(folder.with_name("newer"))
    folder.with_name("kept").rename(folder)
    for _ in range(2):
        # What was refused once is not taken for the stream's own the next time.
        with pytest.raises(Refused, match="the checkpoint is of another query"):
            caught_up(orders)


def test_a_stream_stops_behind_a_committed_batch_and_only_one_process_runs_it(
    new_orders: Callable[..., Orders],
) -> None:
    """While it waits for a frozen table, too."""
    orders = new_orders(partitions=1)
    orders.send(SENT[:10])
    control = orders.open()
    with closing(control.world) as world:
        world.spark()
        store, told = world.store(), list[Progress]()
        frozen = store.leases.acquire(freeze_lease(orders.table), world.holder(), 300)

        def on_progress(progress: Progress) -> None:
            told.append(progress)
            if progress.message.startswith("waits: "):
                with pytest.raises(LeaseHeld, match="runs stream live right now"):
                    orders.open().stream_start("live")
                assert orders.rows() == Counter()
                store.leases.release(frozen)
            elif len(told) == 2:
                orders.send(SENT[10:])
            elif sum(each.rows for each in told) == len(SENT):
                store.streams.ask("live", Stop.BOUNDARY)

        status = control.stream_start("live", on_progress=on_progress)
        assert [each.message.partition(":")[0] for each in told[:3]] == ["waits", "batch 0", "batch 1"]
        assert status.state == "stopped"
        assert orders.rows() == rows_of(SENT, *EVERYTHING)
        assert world.reader().holder(stream_lease("live")) is None
        folder = orders.root / ".checkpoints" / "live"
        begun, over = (
            {int(each.name) for each in (folder / name).iterdir() if each.name.isdigit()}
            for name in ("offsets", "commits")
        )
        assert over == begun or over == begun - {max(begun)}
        assert status.batches[0].batch == max(over), "a batch that was planned only has written nothing"


@BOTH
def test_a_run_under_freeze_lets_the_stream_wait_between_two_batches(
    new_orders: Callable[..., Orders], table_format: TableFormat
) -> None:
    """From its base to its publish: what the stream has to say comes behind it, and makes nothing fail."""
    orders = new_orders(partitions=1, table_format=table_format)
    orders.configure(pipeline="publish: {live: freeze}")
    orders.send(SENT[:20])
    caught_up(orders)
    late = Order(500, FIRST + timedelta(hours=3), "9.00")
    waited: list[str] = []
    control = orders.open()
    with closing(control.world), ThreadPoolExecutor(1) as pool:

        def meanwhile() -> None:
            orders.send([late])
            started.append(pool.submit(_listen, orders, waited))
            wait_until(lambda: bool(waited), "the stream waits", 60)

        started: list[Future[StreamStatus]] = []
        with at_point("run.after-start", meanwhile):
            publication = control.backfill(orders.request("2026-01-01", "2026-01-02"))
        status = started[0].result(60)
    assert waited[0].startswith("waits: ")
    assert publication.version is not None
    assert status.state == "stopped"
    assert orders.rows() == rows_of([*SENT[:20], late], *EVERYTHING)


@BOTH
def test_what_a_stream_has_not_read_yet_is_left_to_it_by_every_run(
    new_orders: Callable[..., Orders], table_format: TableFormat
) -> None:
    """Read by both, it would be in the table twice. What the table has is what counts, not what is on record of it."""
    orders = new_orders(partitions=1, table_format=table_format)
    orders.configure(source="to_end: true", pipeline="publish: {live: keep}")
    orders.send(SENT[:4])
    caught_up(orders)
    orders.send(SENT[4:7])
    with at_point("stream.after-commit", die), pytest.raises(Died):
        caught_up(orders)
    orders.send(SENT[7:])
    control = orders.open()
    with closing(control.world):
        plan = control.plan(orders.request("2026-01-01", "2026-01-02"))
        assert not plan.refused
        told = next(each.reason for each in plan.findings if each.code == "log.left-to-stream")
        assert told.startswith("stream live has not read offsets 0=7..30 of ")
        assert control.run(plan.run_id).state is RunState.ACCEPTED
        control.publish(plan.run_id)
        assert orders.rows() == rows_of(SENT[:7], *EVERYTHING)
        lacks = control.gaps("orders_by_day", start="2026-01-01", end="2026-01-03", against="orders")
        assert not lacks.sound, "what the stream has still to read is no less missing"
    caught_up(orders)
    assert orders.rows() == rows_of(SENT, *EVERYTHING)


def _listen(orders: Orders, told: list[str]) -> StreamStatus:
    with closing(orders.open().world) as world:
        return ControlPlane(world).stream_start(
            "live", once=True, on_progress=lambda progress: told.append(progress.message)
        )


def test_a_backfill_of_a_stream_goes_on_behind_its_last_step(new_orders: Callable[..., Orders]) -> None:
    orders = new_orders(partitions=1)
    orders.send(SENT[:10])
    control = orders.open()
    with closing(control.world):
        begun = control.stream_backfill("live", "2026-01-01", "2026-01-02", pause=True)
        assert (begun.way, begun.steps) == ("pause", ())
        with pytest.raises(StateConflict, match="a backfill of 2026-01-01 to 2026-01-02 on stream live is not over"):
            control.stream_backfill("live", "2026-01-01", "2026-01-03")
        plan = control.plan(orders.request("2026-01-01", "2026-01-02"))
        with pytest.raises(Refused, match=r"records that stream live has not read yet \(0=0\.\.10\)"):
            control.stream_backfill_planned("live", plan)
        control.stream_start("live", once=True)
        control.stream_backfill_step("live", STOPPED)
        control.stream_backfill_step("live", BACKED_UP, backup=control.checkpoint_backup("live").path)
        control.stream_backfill_planned("live", plan)
        again = control.stream_backfill("live", "2026-01-01", "2026-01-02")
        assert again.steps == (STOPPED, BACKED_UP, PLANNED)
        assert (again.run_id, again.backup is not None) == (plan.run_id, True)
        assert control.stream_backfill_step("live", DONE) is None
