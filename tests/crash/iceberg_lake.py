"""The shop on Iceberg: PyIceberg on the catalog that Spark uses, without a JVM of its own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
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

from tests.crash.lake import Row, Rows, revenue, sales

if TYPE_CHECKING:
    from pyiceberg.table import Table

_ATTEMPTS = 5
"""Iceberg's default: one and four retries."""


@dataclass(frozen=True)
class IcebergLake:
    """One folder with catalog.db and warehouse/."""

    root: Path
    namespace: str
    has_tags = True

    @cached_property
    def catalog(self) -> SqlCatalog:
        self.root.mkdir(parents=True, exist_ok=True)
        # The same patience that Spark's side of the catalog has.
        uri = f"sqlite:///{self.root}/catalog.db?timeout=30"
        return SqlCatalog("lake", uri=uri, warehouse=f"file://{self.root}/warehouse")

    def again(self) -> IcebergLake:
        return IcebergLake(self.root, self.namespace)

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

    def head(self) -> int | None:
        """Parses the metadata only when it is another than last time."""
        query = text(
            "SELECT metadata_location FROM iceberg_tables WHERE table_namespace = :n AND table_name = 'revenue'"
        )
        with self.catalog.engine.connect() as connection:
            place = str(connection.execute(query, {"n": self.namespace}).scalar_one())
        if self._seen.get("place") != place:
            snapshot = self.table().current_snapshot()
            self._seen.update(place=place, head=None if snapshot is None else snapshot.snapshot_id)
        return self._seen["head"]

    @cached_property
    def _seen(self) -> dict[str, Any]:
        return {}

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

    def sell(self, sale: dict[str, Any]) -> None:
        table = self.catalog.load_table((self.namespace, "sales"))
        table.append(pa.Table.from_pylist([sale], schema=table.schema().as_arrow()))

    def rows(self, version: int | None = None) -> Rows:
        return Counter(tuple(row.values()) for row in self.table().scan(snapshot_id=version).to_arrow().to_pylist())

    def versions(self) -> list[int]:
        table = self.table()
        return [each.snapshot_id for each in table.history() if table.snapshot_by_id(each.snapshot_id) is not None]

    def refs(self) -> set[str]:
        return set(self.table().refs())

    def stage_head(self, branch: str) -> str | None:
        snapshot = self.table().snapshot_by_name(branch)
        return None if snapshot is None else str(snapshot.snapshot_id)

    def notes(self, key: str, value: str) -> int:
        return sum(1 for each in self.table().snapshots() if (each.summary or {}).get(key) == value)


def _not_landed(error: BaseException) -> bool:
    """PyIceberg looks at main only when it starts over, and stumbles when a commit to another branch came between."""
    return isinstance(error, CommitFailedException) or "older than last sequence number" in str(error)


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
