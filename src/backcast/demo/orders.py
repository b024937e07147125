"""Orders on their way into a topic: what the tills of four shops send, and the row that each must become."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

from backcast.demo.lake import Row
from backcast.testing.kafka_records import Record

SHOPS = ("Berlin", "Lyon", "Porto", "Turin")
GROWN = "Lyon"
"""It got a second till. The others have one."""
COUNTERS = {1: "ground floor", 2: "first floor"}
"""Where the tills of a shop stand."""
A_DAY = 1440
_SCATTER = 8
_MOST_MINUTES_LATE = 20


@dataclass(frozen=True, slots=True)
class Order:
    """One order, as its till sent it, and when it came into the log."""

    id: int
    shop: str
    till: int
    at: datetime
    euros: Decimal
    tills: int
    """How many its shop had by then."""
    written: datetime

    @classmethod
    def of(cls, number: int, at: datetime, *, written: datetime | None = None, grown: bool = True) -> Order:
        shop = SHOPS[number % len(SHOPS)]
        euros = Decimal(100 + number * 37 % 1900) / 100
        tills = 2 if grown and shop == GROWN else 1
        return cls(number, shop, 1 + number // len(SHOPS) % tills, at, euros, tills, written or at)

    def record(self) -> Record:
        value = {
            "id": self.id,
            "shop": self.shop,
            "till": self.till,
            "at": self.at.isoformat(timespec="milliseconds"),
            "amount": float(self.euros),
        }
        return Record(json.dumps(value), key=str(self.id), timestamp=_millis(self.written))

    @property
    def row(self) -> Row:
        """What it must be in the table: id, shop, counter, milliseconds, amount, day."""
        return self._at(self.till)

    @property
    def wrong_rows(self) -> list[Row]:
        """What version 1.0.0 makes of it: a row for every till of the shop."""
        return [self._at(till) for till in range(1, self.tills + 1)]

    def _at(self, till: int) -> Row:
        return self.id, self.shop, COUNTERS[till], _millis(self.at), self.euros, self.at.date()


def history(first: date, days: int, grown: date) -> list[Order]:
    """In the order of the log, which is not that of the orders: some of them are minutes late."""
    return sorted(_spread(first, days, grown), key=lambda each: each.written)


def broken_record(day: date) -> Record:
    """A till lost power at noon, in the middle of its order."""
    return Record('{"id": 4711, "shop": "Por', key="4711", timestamp=_millis(_noon(day)))


def records(orders: Iterable[Order], broken_on: date) -> Iterator[Record]:
    """The history as it goes into the topic, with the broken record at its place."""
    left = [broken_record(broken_on)]
    for each in orders:
        if left and each.written > _noon(broken_on):
            yield left.pop()
        yield each.record()


def _spread(first: date, days: int, grown: date) -> Iterator[Order]:
    begin = datetime.combine(first, time(), UTC)
    for number in range(days * A_DAY):
        at = begin + timedelta(days=1) * number / A_DAY
        late = timedelta(minutes=number * _SCATTER % (_MOST_MINUTES_LATE + 1))
        yield Order.of(number, at, written=at + late, grown=at.date() >= grown)


def _noon(day: date) -> datetime:
    return datetime.combine(day, time(12), UTC)


def _millis(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
