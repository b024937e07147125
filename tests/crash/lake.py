"""The shop's tables seen from outside: PyIceberg on the catalog that Spark uses, without a JVM of its own.

It makes the tables, writes like a live stream and reads like any consumer. What the product should make of the tables
is computed here in plain Python.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    DateType,
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)
from sqlalchemy import text
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random

if TYPE_CHECKING:
    from pyiceberg.table import Table

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
_ATTEMPTS = 5
"""Iceberg's default: one and four retries."""


def in_scope(row: Row) -> bool:
    return row[0] in SCOPE_DAYS


def is_live(row: Row) -> bool:
    return str(row[1]).startswith(LIVE)


def live_row(day: date, number: int) -> Row:
    """Every live row has a key of its own, so that a lost or doubled one is seen."""
    return (day, f"{LIVE}-{number}", 1, Decimal("1.00"))


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


@dataclass(frozen=True)
class Lake:
    """One folder with catalog.db and warehouse/. Threads take one each: a catalog is not made to be shared."""

    root: Path
    namespace: str

    @cached_property
    def catalog(self) -> SqlCatalog:
        self.root.mkdir(parents=True, exist_ok=True)
        # The same patience that Spark's side of the catalog has.
        uri = f"sqlite:///{self.root}/catalog.db?timeout=30"
        return SqlCatalog("lake", uri=uri, warehouse=f"file://{self.root}/warehouse")

    def again(self) -> Lake:
        return Lake(self.root, self.namespace)

    def close(self) -> None:
        self.catalog.engine.dispose()

    def create(self) -> None:
        """Both tables: the input right, the output as the old code computed it."""
        self.catalog.create_namespace(self.namespace)
        table = self.catalog.create_table((self.namespace, "sales"), _SALES_SCHEMA)
        table.append(pa.Table.from_pylist(sales(), schema=table.schema().as_arrow()))
        day = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
        self.catalog.create_table((self.namespace, "revenue"), _REVENUE_SCHEMA, partition_spec=day)
        self.append(*revenue(mended=False))

    def table(self) -> Table:
        """The output as it is now."""
        return self.catalog.load_table((self.namespace, "revenue"))

    def place(self) -> str:
        """Where the output's newest metadata lies: while it is the same, nothing was committed. Costs no parsing."""
        query = text(
            "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = :n AND table_name = 'revenue'"
        )
        with self.catalog.engine.connect() as connection:
            return str(connection.execute(query, {"n": self.namespace}).scalar_one())

    def append(self, *rows: Row) -> None:
        """One commit on main. Raises when the table is so busy that a stream with default settings would fail too."""
        for attempt in Retrying(
            retry=retry_if_exception(_not_landed), stop=stop_after_attempt(_ATTEMPTS), wait=wait_random(0, 0.1)
        ):
            with attempt:
                self._append(rows)

    def _append(self, rows: tuple[Row, ...]) -> None:
        table = self.table()
        columns = table.schema().column_names
        as_dicts = [dict(zip(columns, row, strict=True)) for row in rows]
        table.append(pa.Table.from_pylist(as_dicts, schema=table.schema().as_arrow()))

    def rows(self, snapshot: int | None = None) -> Rows:
        return rows_of(self.table(), snapshot)

    def refs(self) -> set[str]:
        return set(self.table().refs())


def _not_landed(error: BaseException) -> bool:
    """PyIceberg looks at main only when it starts over, and stumbles when a commit to another branch came between."""
    return isinstance(error, CommitFailedException) or "older than last sequence number" in str(error)


def rows_of(table: Table, snapshot: int | None = None) -> Rows:
    return Counter(tuple(row.values()) for row in table.scan(snapshot_id=snapshot).to_arrow().to_pylist())


def main_history(table: Table) -> Iterator[int]:
    """Every version that readers of the table could see, oldest first, as far as the table remembers."""
    for entry in table.history():
        if table.snapshot_by_id(entry.snapshot_id) is not None:
            yield entry.snapshot_id


_SALES_SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "shop", StringType(), required=False),
    NestedField(3, "sold_at", TimestamptzType(), required=False),
    NestedField(4, "amount", DecimalType(10, 2), required=False),
    NestedField(5, "quantity", IntegerType(), required=False),
)
_REVENUE_SCHEMA = Schema(
    NestedField(1, "day", DateType(), required=False),
    NestedField(2, "shop", StringType(), required=False),
    NestedField(3, "sales", LongType(), required=False),
    NestedField(4, "revenue", DecimalType(30, 2), required=False),
)
