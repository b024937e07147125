"""Iceberg tables in the hands of other people."""

from __future__ import annotations

import itertools
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import unquote, urlparse

from backcast.targets.iceberg.target import IcebergTarget
from backcast.testing.target_lab import Ability, Lab, LabTable, Rows, day_literal
from backcast.testing.target_wire import GATEWAY, answer_lost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

_FAR = 2**62
_numbers = itertools.count(1)


class IcebergTable(LabTable):
    """A table of an Iceberg catalog."""

    expiries: ClassVar[tuple[str, ...]] = ("expire_snapshots", "the core API")
    lost_answers: ClassVar[tuple[str, ...]] = (GATEWAY,)

    def target(self) -> IcebergTarget:
        return IcebergTarget(self.spark, self.name)

    def root(self) -> Path:
        return Path(unquote(urlparse(self.java().location()).path))

    def java(self) -> Any:
        """The Java table, as other tools see it."""
        jvm: Any = self.spark._jvm
        return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, self.name)

    def rows_at(self, version: str) -> Rows:
        found = self.spark.sql(f"SELECT * FROM {self.name} VERSION AS OF {version}").collect()
        return Counter(tuple(row) for row in found)

    def compact(self, day: int | None = None) -> None:
        where = f', where => "day = {day_literal(day)}"' if day else ""
        self._call("rewrite_data_files", f", options => map('rewrite-all', 'true'){where}")

    def expire(self, how: str) -> None:
        """Expiry in one of its two ways, which clean differently, then the removal of orphans."""
        if how == "expire_snapshots":
            self._call("expire_snapshots", ", older_than => TIMESTAMP '2099-01-01 00:00:00', retain_last => 1")
        else:
            self.java().expireSnapshots().expireOlderThan(_FAR).retainLast(1).commit()
        actions: Any = self.spark._jvm.org.apache.iceberg.spark.actions.SparkActions  # type: ignore[union-attr]
        actions.get(self.spark._jsparkSession).deleteOrphanFiles(self.java()).olderThan(_FAR).execute()

    def traces(self) -> set[str]:
        return {row.name for row in self.spark.sql(f"SELECT name FROM {self.name}.refs").collect()} - {"main"}

    def retire(self) -> None:
        """Nothing to wait for: what a run lets go of is deleted at once, all else is the table's."""

    def lost_answer(self, where: str) -> AbstractContextManager[None]:
        assert where == GATEWAY
        return answer_lost(self.spark, "commit")

    def change_spec(self) -> None:
        self.spark.sql(f"ALTER TABLE {self.name} ADD PARTITION FIELD bucket(2, id)")

    def _call(self, procedure: str, arguments: str) -> None:
        catalog = self.name.partition(".")[0]
        self.spark.sql(f"CALL {catalog}.system.{procedure}(table => '{self.name}'{arguments})").collect()


class IcebergLab(Lab):
    """Tables in one namespace of an Iceberg catalog."""

    format: ClassVar[str] = "iceberg"
    lacks: ClassVar[Mapping[Ability, str]] = {
        Ability.MOVES_WHILE_LANDING: "Iceberg compares and swaps the whole metadata of a table: a transaction that was "
        "prepared is refused by any other commit, and decided again",
    }

    def __init__(self, spark: SparkSession, namespace: str) -> None:
        super().__init__(spark)
        self._namespace = namespace

    def new_name(self) -> str:
        return f"{self._namespace}.t{next(_numbers)}"

    def table(self, name: str) -> IcebergTable:
        return IcebergTable(self.spark, name)
