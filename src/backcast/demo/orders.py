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
CHANGED = "Lyon"
"""Its new till sends cents, and says so. The others send euros."""
A_DAY = 1440
_SCATTER = 8
_MOST_MINUTES_LATE = 20


@dataclass(frozen=True, slots=True)
class Order:
    """One order, as its till sent it, and when it came into the log."""

    id: int
    shop: str
    at: datetime
    euros: Decimal
    in_cents: bool
    written: datetime

    @classmethod
    def of(cls, number: int, at: datetime, *, written: datetime | None = None, new_till: bool = True) -> Order:
        shop = SHOPS[number % len(SHOPS)]
        euros = Decimal(100 + number * 37 % 1900) / 100
        return cls(number, shop, at, euros, new_till and shop == CHANGED, written or at)

    def record(self) -> Record:
        amount, unit = (int(self.euros * 100), "cent") if self.in_cents else (float(self.euros), "euro")
        value = {"id": self.id, "shop": self.shop, "at": _spelled(self.at), "amount": amount, "unit": unit}
        return Record(json.dumps(value), key=str(self.id), timestamp=_millis(self.written))

    @property
    def row(self) -> Row:
        """What it must be in the table: id, shop, milliseconds, amount, day."""
        return self.id, self.shop, _millis(self.at), self.euros, self.at.date()

    @property
    def wrong_row(self) -> Row:
        """What version 1.0.0 makes of it."""
        return self.id, self.shop, _millis(self.at), self.euros * (100 if self.in_cents else 1), self.at.date()


def history(first: date, days: int, new_till: date) -> list[Order]:
    """In the order of the log, which is not that of the orders: some of them are minutes late."""
    return sorted(_spread(first, days, new_till), key=lambda each: each.written)


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


def _spread(first: date, days: int, new_till: date) -> Iterator[Order]:
    begin = datetime.combine(first, time(), UTC)
    for number in range(days * A_DAY):
        at = begin + timedelta(days=1) * number / A_DAY
        late = timedelta(minutes=number * _SCATTER % (_MOST_MINUTES_LATE + 1))
        yield Order.of(number, at, written=at + late, new_till=at.date() >= new_till)


def _noon(day: date) -> datetime:
    return datetime.combine(day, time(12), UTC)


def _millis(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def _spelled(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
