"""The shop's tables seen from outside, without Spark, and what the product should make of them, in plain Python.

A lake makes the tables, writes like a live stream and reads like any consumer; there is one for each format.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

Row = tuple[Any, ...]
Rows = Counter[Row]

FIRST = date(2026, 1, 1)
DAYS = 6
SCOPE = ("2026-01-03", "2026-01-05")
"""Two days, so two chunks. `--to` is exclusive."""
SCOPE_DAYS = (date(2026, 1, 3), date(2026, 1, 4))
OTHER_DAYS = tuple(day for n in range(DAYS) if (day := FIRST + timedelta(n)) not in SCOPE_DAYS)
LIVE = "LIVE"

_SALES = 8 * DAYS


def in_scope(row: Row) -> bool:
    return row[0] in SCOPE_DAYS


def is_live(row: Row) -> bool:
    return str(row[1]).startswith(LIVE)


def live_row(day: date, number: int) -> Row:
    """Every live row has a key of its own, so that a lost or doubled one is seen."""
    return (day, f"{LIVE}-{number}", 1, Decimal("1.00"))


def sale_of(row: Row) -> dict[str, Any]:
    """The sale of one piece that explains a live row."""
    day, shop, _, amount = row
    sold_at = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
    return {"id": 999, "shop": shop, "sold_at": sold_at, "amount": amount, "quantity": 1}


def sales() -> list[dict[str, Any]]:
    start = datetime(FIRST.year, FIRST.month, FIRST.day, tzinfo=UTC)
    return [
        {
            "id": n,
            "shop": f"S{n % 4}",
            "sold_at": start + timedelta(days=n % DAYS, minutes=n // DAYS),
            "amount": Decimal(1 + n % 7).quantize(Decimal("0.01")),
            "quantity": 1 + n % 3,
        }
        for n in range(_SALES)
    ]


def revenue(*, mended: bool) -> Rows:
    """Revenue per day and shop: as the old code computed it, or as the new code must."""
    count: dict[tuple[date, str], int] = defaultdict(int)
    total: dict[tuple[date, str], Decimal] = defaultdict(Decimal)
    for sale in sales():
        key = (sale["sold_at"].date(), sale["shop"])
        count[key] += 1
        total[key] += sale["amount"] * (sale["quantity"] if mended else 1)
    return Counter((*key, count[key], total[key]) for key in count)


OLD = Counter({row: n for row, n in revenue(mended=False).items() if in_scope(row)})
NEW = Counter({row: n for row, n in revenue(mended=True).items() if in_scope(row)})
OUTSIDE = Counter({row: n for row, n in revenue(mended=False).items() if not in_scope(row)})


class Lake(Protocol):
    """Threads take one each: a connection is not made to be shared."""

    root: Path
    has_tags: bool
    """Whether the format marks versions of a table with names."""

    def create(self) -> None:
        """Both tables: the input right, the output as the old code computed it."""

    def again(self) -> Lake: ...

    def close(self) -> None: ...

    def append(self, *rows: Row) -> None:
        """One commit on the output. Raises when it is so busy that a stream with default settings would fail too."""

    def sell(self, sale: dict[str, Any]) -> None:
        """One commit on the input."""

    def rows(self, version: int | None = None) -> Rows:
        """The output, now or at a version."""

    def head(self) -> int | None:
        """The output's newest version; asking must be cheap."""

    def versions(self) -> list[int]:
        """Every version that readers of the output could see, oldest first, as far as the table remembers."""

    def refs(self) -> set[str]:
        """Names of what runs keep in the output, and `main`."""

    def stage_head(self, branch: str) -> str | None:
        """The newest version of a stage, as the product calls it."""

    def notes(self, key: str, value: str) -> int:
        """How many commits, on whatever branch, carry that property."""
