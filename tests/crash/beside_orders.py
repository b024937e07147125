"""Orders that keep arriving beside restatements of their table, and what the table must hold in the end.

The oracle is plain Python over what was sent: a record has the amount of the newest published run that read it, and
that of the stream when there is none.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from itertools import count

from backcast.model.pipeline import TableFormat
from backcast.testing.orders import FIRST, Order, Orders

DAYS = tuple(f"{FIRST + timedelta(days=number):%Y-%m-%d}" for number in range(8))
POLICIES = ("keep", "freeze", "fail", "restage")
RAW = "lake.inputs.raw"
"""What restatements read that do not read the topic."""
_PARTITIONS = 3


def configure(orders: Orders) -> None:
    """A pipeline for each live policy beside that of the stream; one of them reads a table instead of the topic."""
    orders.configure(source="to_end: true", stream="most_per_trigger: 50")
    file = orders.root / "backcast.yaml"
    dataset = f"  raw: {{table: {RAW}, time: {{column: day, kind: date}}, grain: day, key: [id]}}\n"
    pipelines = "".join(
        f"  {policy}: {{sql: models/mended.sql, version: 1.0.0, output: orders_by_day, chunks_per_job: 1,"
        f" inputs: {{orders: {'raw' if policy == 'restage' else 'orders'}}}, publish: {{live: {policy}}}}}\n"
        for policy in POLICIES
    )
    text = file.read_text().replace("pipelines:\n", f"{dataset}pipelines:\n{pipelines}", 1)
    file.write_text(text)
    orders.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {RAW.removesuffix('.raw')}")
    orders.spark.sql(
        f"CREATE TABLE {RAW} (id BIGINT, shop STRING, at TIMESTAMP, amount DECIMAL(10,2), day DATE) USING iceberg"
        " PARTITIONED BY (day)"
    )


def mend(orders: Orders, number: int) -> None:
    """The formula of restatement so-and-so: every amount is that much greater."""
    (orders.root / "models" / "mended.sql").write_text(
        f"SELECT id, shop, at, CAST(amount + {number} AS DECIMAL(10,2)) AS amount, to_date(at) AS day FROM orders\n"
    )


@dataclass(frozen=True, slots=True)
class Sent:
    """One order, and where the broker put it."""

    order: Order
    partition: int
    offset: int

    @property
    def day(self) -> str:
        return f"{self.order.at:%Y-%m-%d}"

    def is_before(self, ends: Mapping[int, int]) -> bool:
        return self.offset < ends.get(self.partition, 0)


class Sender(threading.Thread):
    """Sends a few orders every now and then, of any day but those that are to be avoided."""

    def __init__(self, orders: Orders, seed: int) -> None:
        super().__init__(name="sender", daemon=True)
        self._orders, self._dice = orders, random.Random(seed)  # noqa: S311 - orders, not secrets
        self._numbers = count()
        self._avoided: frozenset[str] = frozenset()
        self._sending, self._stop_asked = threading.Lock(), threading.Event()
        self.sent: list[Sent] = []
        self.error: Exception | None = None

    def avoid(self, days: Iterable[str]) -> None:
        """From now on nothing of these days is sent."""
        with self._sending:
            self._avoided = frozenset(days)

    def stop(self) -> None:
        self._stop_asked.set()
        self.join(60)

    def run(self) -> None:
        while not self._stop_asked.wait(self._dice.uniform(0.1, 1.5)):
            try:
                self.send(self._dice.randint(1, 12))
            except Exception as error:  # noqa: BLE001 - whoever watches says what it was
                self.error = error
                return

    def send(self, number: int) -> None:
        with self._sending:
            days = [place for place, day in enumerate(DAYS) if day not in self._avoided]
            new = [self._order(self._dice.choice(days)) for _ in range(number)]
            records = [each.record(self._dice.randrange(_PARTITIONS)) for each in new]
            placed = self._orders.broker.produce(self._orders.topic, records)
            self.sent += [
                Sent(*each) for each in ((o, p.partition, p.offset) for o, p in zip(new, placed, strict=True))
            ]

    def _order(self, day: int) -> Order:
        number = next(self._numbers)
        at = FIRST + timedelta(days=day, seconds=self._dice.randrange(86_400))
        return Order(number, at, f"{1 + number % 7}.50", f"S{number % 3}")


@dataclass
class Restated:
    """One restatement: what it was to do, and what became of it."""

    number: int
    policy: str
    days: tuple[str, ...]
    undoes: bool
    run_id: str | None = None
    given_up: bool = False
    published: bool = False
    """And not taken back."""
    kills: int = 0
    read: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Offsets of each partition that it read; nothing for one that reads a table."""
    version: str = ""


def wanted(sent: Iterable[Sent], restated: Iterable[Restated], landed: Landed) -> Counter[tuple[object, ...]]:
    """Every row of the table as (id, day, amount)."""
    in_order = sorted((each for each in restated if each.published), key=lambda each: each.number)

    def amount(record: Sent) -> Decimal:
        mine = [each for each in in_order if record.day in each.days and _has_read(each, record, landed)]
        return Decimal(record.order.amount) + (mine[-1].number if mine and mine[-1].policy != "pause" else 0)

    return Counter((each.order.id, each.day, str(amount(each))) for each in sent)


def _has_read(run: Restated, record: Sent, landed: Landed) -> bool:
    if run.policy == "restage":
        # Every live row that was there when it was published is in its result, or it would have been refused.
        return landed.place(record) < landed.order[run.version]
    start, end = run.read.get(record.partition, (0, 0))
    return start <= record.offset < end


@dataclass(frozen=True)
class Landed:
    """In which order commits came to the live table, and with which of them each record."""

    order: dict[str, int]
    batches: list[tuple[dict[int, tuple[int, int]], int]]
    """Offsets of a stream's batch, and the place of its commit."""

    def place(self, record: Sent) -> int:
        """-1 for one whose batch nobody remembers: it came before all others."""
        for offsets, place in self.batches:
            start, end = offsets.get(record.partition, (0, 0))
            if start <= record.offset < end:
                return place
        return -1

    @classmethod
    def look(cls, orders: Orders) -> Landed:
        order = {version: place for place, version in enumerate(_versions(orders))}
        with closing(orders.open().world) as world:
            known = world.stream_reader().batches("live", 1_000_000)
        batches = [
            ({one.partition: (one.start, one.end) for one in each.offsets}, order[each.version])
            for each in known
            if each.landed and each.version is not None
        ]
        return cls(order, batches)


def _versions(orders: Orders) -> Iterator[str]:
    """Of the live table, oldest first."""
    if orders.format is TableFormat.DELTA:
        newest = orders.spark.sql(f"DESCRIBE HISTORY {orders.table}").agg({"version": "max"}).collect()[0][0]
        yield from map(str, range(int(newest) + 1))
        return
    rows = orders.spark.sql(f"SELECT snapshot_id, parent_id FROM {orders.table}.snapshots").collect()
    parents = {row[0]: row[1] for row in rows}
    each = orders.spark.sql(f"SELECT snapshot_id FROM {orders.table}.refs WHERE name = 'main'").collect()[0][0]
    back: list[str] = []
    while each is not None:
        back.append(str(each))
        each = parents.get(each)
    yield from reversed(back)
