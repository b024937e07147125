"""The shop on Delta: delta-rs on the folders that Spark uses, without a JVM of its own."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from tests.crash.lake import Row, Rows, revenue, sales

_SALES = pa.schema(
    [
        ("id", pa.int64()),
        ("shop", pa.string()),
        ("sold_at", pa.timestamp("us", tz="UTC")),
        ("amount", pa.decimal128(10, 2)),
        ("quantity", pa.int32()),
    ]
)
_REVENUE = pa.schema(
    [("day", pa.date32()), ("shop", pa.string()), ("sales", pa.int64()), ("revenue", pa.decimal128(30, 2))]
)
_ATTEMPTS = 5
_RETRIES = CommitProperties(max_commit_retries=15)


@dataclass(frozen=True)
class DeltaLake:
    """Two folders, sales/ and revenue/."""

    root: Path
    has_tags = False

    @property
    def _revenue(self) -> str:
        return str(self.root / "revenue")

    def create(self) -> None:
        write_deltalake(str(self.root / "sales"), pa.Table.from_pylist(sales(), schema=_SALES))
        rows = [dict(zip(_REVENUE.names, row, strict=True)) for row in revenue(mended=False)]
        write_deltalake(self._revenue, pa.Table.from_pylist(rows, schema=_REVENUE), partition_by=["day"])

    def again(self) -> DeltaLake:
        return self

    def close(self) -> None:
        """Nothing is open."""

    def append(self, *rows: Row) -> None:
        as_dicts = [dict(zip(_REVENUE.names, row, strict=True)) for row in rows]
        table = pa.Table.from_pylist(as_dicts, schema=_REVENUE)
        for attempt in range(_ATTEMPTS):
            try:
                write_deltalake(self._revenue, table, mode="append", commit_properties=_RETRIES)
            except CommitFailedError:
                # To delta-rs even an append has read what a publish at the same moment removes; its users begin anew.
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return

    def sell(self, sale: dict[str, Any]) -> None:
        write_deltalake(str(self.root / "sales"), pa.Table.from_pylist([sale], schema=_SALES), mode="append")

    def rows(self, version: int | None = None) -> Rows:
        table = DeltaTable(self._revenue, version=version).to_pyarrow_table(columns=_REVENUE.names)
        return Counter(tuple(row.values()) for row in table.to_pylist())

    def head(self) -> int | None:
        return self._numbers(self.root / "revenue")[-1]

    def versions(self) -> list[int]:
        return self._numbers(self.root / "revenue")

    def refs(self) -> set[str]:
        stages = self.root / "revenue" / "_backcast"
        found = {each.name for each in stages.iterdir() if (each / "_delta_log").exists()} if stages.exists() else set()
        return {"main"} | found

    def stage_head(self, branch: str) -> str | None:
        numbers = self._numbers(self.root / "revenue" / "_backcast" / branch)
        return f"{branch}@{numbers[-1]}" if numbers else None

    def notes(self, key: str, value: str) -> int:
        tables = [self.root / "revenue", *(self.root / "revenue" / "_backcast").glob("*")]
        commits = (path for table in tables for path in (table / "_delta_log").glob("*.json"))
        return sum(1 for path in commits if str(_note(path).get(key)) == value)

    def _numbers(self, table: Path) -> list[int]:
        return sorted(int(each.stem) for each in (table / "_delta_log").glob("*.json") if each.stem.isdigit())


def _note(commit: Path) -> dict[str, Any]:
    lines = (json.loads(line) for line in commit.read_text().splitlines())
    info = next((line["commitInfo"] for line in lines if "commitInfo" in line), {})
    note: dict[str, Any] = json.loads(info.get("userMetadata") or "{}")
    return note
