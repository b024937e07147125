"""Delta tables of the contract as anybody can read them, by the log and its files: that costs no Spark job.

Their writers use SQL. A table that needs more of its reader than plain files is read by Spark.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq

from backcast.testing.target_delta import DeltaLab, DeltaTable, RewritingLab, RewrittenTable
from backcast.testing.target_lab import FIRST, Row, Rows

_VALUES: Mapping[str, Callable[[str], Any]] = {"date": date.fromisoformat, "long": int, "string": str}
"""What the log says of a partition, by the type of its column."""


class OutsideDeltaTable(DeltaTable):
    """What is live, without any memory of what was."""

    def rows(self) -> Rows:
        return Counter(tuple(row.values()) for row in read(self.root()))

    def values(self) -> list[Row]:
        return sorted((row["id"], (row["day"] - FIRST).days + 1, row["v"]) for row in read(self.root()))


class _OutsideRewrittenTable(OutsideDeltaTable, RewrittenTable):
    """The same where publish and undo write rows."""


class OutsideDeltaLab(DeltaLab):
    """Commits of exact files."""

    def table(self, name: str) -> DeltaTable:
        return OutsideDeltaTable(self.spark, name)


class OutsideRewritingLab(RewritingLab):
    """Commits of rows."""

    def table(self, name: str) -> RewrittenTable:
        return _OutsideRewrittenTable(self.spark, name)


def read(root: Path) -> list[dict[str, Any]]:
    """Every row of the table, its columns in order."""
    columns: dict[str, str] = {}
    live: dict[str, dict[str, Any]] = {}
    for commit in sorted((root / "_delta_log").glob("*.json")):
        for action in map(json.loads, commit.read_text().splitlines()):
            if "metaData" in action:
                fields = json.loads(action["metaData"]["schemaString"])["fields"]
                columns = {field["name"]: field["type"] for field in fields}
            elif "remove" in action:
                live.pop(action["remove"]["path"], None)
            elif "add" in action:
                live[action["add"]["path"]] = action["add"]
    return [row for add in live.values() for row in _rows(root, add, columns)]


def _rows(root: Path, add: dict[str, Any], columns: dict[str, str]) -> list[dict[str, Any]]:
    assert not add.get("deletionVector"), "some rows of this file are not live"
    partition = {
        name: None if value is None else _VALUES[columns[name]](value) for name, value in add["partitionValues"].items()
    }
    rows = pq.ParquetFile(root / unquote(urlparse(add["path"]).path)).read().to_pylist()
    return [{name: partition.get(name, row.get(name)) for name in columns} for row in rows]
