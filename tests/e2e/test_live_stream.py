"""A live stream with every setting at its default, beside a run, publish, undo and gc of the table it writes to."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.model.pipeline import TableFormat
from backcast.model.states import RunState
from backcast.testing.shop import DAYS, Shop

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

TODAY = date(2026, 3, 1)
WINDOW = ("2026-01-02", "2026-02-19")
CHUNKS = 48
CHUNKS_PER_JOB = {TableFormat.ICEBERG: 8, TableFormat.DELTA: 12}
"""On Iceberg each commit to the stage is one to the table that the stream must get past. A stage on Delta has a log of
its own, and the stream meets only publish and undo."""
_SECONDS_BETWEEN_FILES = 0.2
_TRIGGER = "300 milliseconds"
_ROWS_PER_FILE = 3
_LEAST_BATCHES = 5
"""Fewer beside a whole run would prove nothing."""

Rows = Counter[tuple[object, ...]]


class Stream:
    """Structured Streaming into today's partition, in a session of its own; a thread feeds it a small file at a time.

    Neither the query nor the table is told to be patient.
    """

    def __init__(self, shop: Shop) -> None:
        self._feed, self._checkpoint = shop.root / "feed", shop.root / "checkpoint"
        self._feed.mkdir()
        self._given: Rows = Counter()
        self._stop, self._between = threading.Event(), threading.Lock()
        self._feeder = threading.Thread(target=self._work, daemon=True)
        self.query = self._start(shop)
        self._feeder.start()

    def _start(self, shop: Shop) -> StreamingQuery:
        rows = shop.spark.newSession().readStream.schema(shop.spark.table(shop.revenue).schema).json(str(self._feed))
        writer = rows.writeStream.format(shop.format).option("checkpointLocation", str(self._checkpoint))
        writer = writer.trigger(processingTime=_TRIGGER)
        if shop.format is TableFormat.ICEBERG:
            return writer.toTable(shop.revenue)
        return writer.start(f"{shop.root}/lake/revenue")

    @property
    def batches(self) -> int:
        """How many batches the stream itself counts as done."""
        return max((int(each.name) + 1 for each in (self._checkpoint / "commits").glob("[0-9]*")), default=0)

    @contextmanager
    def caught_up(self) -> Iterator[Rows]:
        """Inside, nothing is on its way: these rows are all that the stream was ever given."""
        with self._between:
            self.query.processAllAvailable()
            yield self._given.copy()

    def stop(self) -> None:
        self._stop.set()
        self._feeder.join()
        self.query.stop()

    def _work(self) -> None:
        while not self._stop.wait(_SECONDS_BETWEEN_FILES):
            with self._between:
                self._add_file()

    def _add_file(self) -> None:
        first = self._given.total()
        keys = [f"LIVE-{number}" for number in range(first, first + _ROWS_PER_FILE)]
        lines = [json.dumps({"day": TODAY.isoformat(), "shop": key, "sales": 1, "revenue": "1.00"}) for key in keys]
        hidden = self._feed / f".{first}.json"
        hidden.write_text("\n".join(lines))
        hidden.rename(self._feed / f"{first}.json")
        self._given.update((TODAY, key, 1, Decimal("1.00")) for key in keys)


@pytest.fixture
def long_shop(shop: Shop, lake_root: Path) -> Shop:
    """Fifty days instead of ten."""
    shop.configure(lake_root, chunks_per_job=CHUNKS_PER_JOB[shop.format], undo_window="0s")
    shop.spark.sql(
        f"""INSERT INTO {shop.sales}
        SELECT id + 1000, concat('S', id % 4), timestampadd(DAY, CAST({DAYS} + id % 40 AS INT),
               TIMESTAMP'2026-01-01 06:00:00Z'), CAST(1 + id % 7 AS DECIMAL(10,2)), CAST(1 + id % 3 AS INT)
        FROM range(160)"""
    )
    shop.spark.sql(
        f"""INSERT INTO {shop.revenue} SELECT to_date(sold_at), shop, count(*), CAST(sum(amount) AS DECIMAL(30,2))
        FROM {shop.sales} WHERE id >= 1000 GROUP BY 1, 2"""
    )
    return shop


@pytest.fixture
def stream(long_shop: Shop) -> Iterator[Stream]:
    stream = Stream(long_shop)
    yield stream
    stream.stop()


@pytest.mark.parametrize("shop", list(TableFormat), indirect=True)
def test_a_live_stream_never_fails_because_of_a_run(long_shop: Shop, stream: Stream) -> None:
    """It goes on through every step of a run of many commits, and each of its rows is in the table exactly once."""
    shop = long_shop
    with stream.caught_up() as live:
        before, restated = shop.rows() - live, shop.expected(*WINDOW) - live
    assert before != restated
    control = shop.open()
    run_id = control.plan(shop.request(*WINDOW)).run_id

    first = stream.batches
    assert control.run(run_id).state is RunState.ACCEPTED
    assert stream.query.exception() is None
    assert stream.batches - first >= _LEAST_BATCHES
    assert len(control.world.reader().stage_records(run_id)) == CHUNKS / CHUNKS_PER_JOB[shop.format]

    control.publish(run_id)
    with stream.caught_up() as live:
        assert shop.rows() == restated + live
    control.undo(run_id)
    with stream.caught_up() as live:
        assert shop.rows() == before + live
    assert [item.run_id for item in control.gc().items] == [run_id]
    with stream.caught_up() as live:
        assert shop.rows() == before + live

    assert stream.query.exception() is None
    assert stream.query.isActive
    properties = shop.spark.sql(f"SHOW TBLPROPERTIES {shop.revenue}").collect()
    assert not [row.key for row in properties if "retry" in row.key], "nobody made the stream more patient"
