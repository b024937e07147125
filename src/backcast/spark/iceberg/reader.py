"""The port Source over an Iceberg table: what its target and its source have in common."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from backcast.model.scope import Predicate
from backcast.model.table import Claim, FileList, TableFacts
from backcast.spark.gateway import jvm_errors
from backcast.spark.iceberg.claims import proven
from backcast.spark.iceberg.expressions import to_expression
from backcast.spark.iceberg.facts import table_facts
from backcast.spark.iceberg.files import data_files, plan_files, stage_tasks
from backcast.spark.iceberg.handle import TableHandle, snapshot_of
from backcast.spark.predicates import to_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class IcebergReader:
    """Reads one table at any of its versions. Never writes."""

    def __init__(self, spark: SparkSession, table_name: str) -> None:
        self._handle = TableHandle(spark, table_name)

    def _errors(self, doing: str) -> AbstractContextManager[None]:
        return jvm_errors(f"{doing} {self._handle.name}", table=self._handle.name)

    def facts(self, version: str | None = None) -> TableFacts:
        """The given version, or the newest. Schema and partitioning are always today's."""
        with self._errors("looking at"):
            return table_facts(self._handle, version)

    def version_at(self, moment: datetime) -> str | None:
        """By the history of main, which expiry cuts off at its beginning."""
        with self._errors("looking for a version of"):
            millis = (moment - _EPOCH) // timedelta(milliseconds=1)
            found = self._handle.java("util.SnapshotUtil").nullableSnapshotIdAsOfTime(self._handle.load(), millis)
            return None if found is None else str(found)

    def files(self, version: str | None, predicate: Predicate) -> FileList:
        """Files of that version that can hold matching rows, from metadata alone."""
        with self._errors("listing files of"):
            table = self._handle.load()
            expression = to_expression(self._handle, predicate, self._handle.types(table))
            planned = plan_files(self._handle, table, version, expression)
            return FileList(version, tuple(each.ref for each in planned))

    def read(self, version: str | None, predicate: Predicate) -> DataFrame:
        """Exactly the matching rows of that version; an empty frame when the table has none yet."""
        with self._errors("reading"):
            table = self._handle.load()
            spark, quoted = self._handle.spark, self._handle.quoted
            if version is None:
                return spark.table(quoted).where("false")
            snapshot_of(table, version)
            frame = spark.read.option("snapshot-id", version).table(quoted)
            types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
            return frame.where(to_column(predicate, types)) if predicate.clauses else frame

    def lost(self, version: str | None, predicate: Predicate) -> str | None:
        """None: expiry takes a version away before its files."""
        del version, predicate
        return None

    def proven(self, version: str | None, predicate: Predicate, claims: Sequence[Claim]) -> frozenset[Claim]:
        """By the metrics of files that can hold matching rows."""
        if version is None or not claims:
            return frozenset(claims)
        with self._errors("looking at the metrics of"):
            table = self._handle.load()
            expression = to_expression(self._handle, predicate, self._handle.types(table))
            files = data_files(self._handle, table, version, expression).values()
            return proven(self._handle, table, files, claims)

    def read_files(self, version: str | None, paths: frozenset[str], near: Predicate) -> DataFrame:
        """Every row of exactly these files. `near` helps to find them; otherwise all of the version is listed."""
        with self._errors("reading files of"):
            table = self._handle.load()
            spark, quoted = self._handle.spark, self._handle.quoted
            if version is None or not paths:
                return spark.table(quoted).where("false")
            expression = to_expression(self._handle, near, self._handle.types(table))
            set_id = stage_tasks(self._handle, table, version, paths, expression)
            return spark.read.option("scan-task-set-id", set_id).table(quoted)
