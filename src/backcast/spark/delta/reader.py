"""The port Source over a Delta table: what its target and its source have in common."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING

from backcast.errors import Drifted
from backcast.model.scope import Predicate
from backcast.model.table import Claim, FileList, TableFacts
from backcast.spark.delta.bounds import proven
from backcast.spark.delta.facts import table_facts
from backcast.spark.delta.handle import DeltaHandle
from backcast.spark.delta.lost import lost_file
from backcast.spark.gateway import jvm_errors
from backcast.spark.predicates import quote, to_column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DeltaReader:
    """Reads one table at any of its versions. Never writes."""

    def __init__(self, spark: SparkSession, table_name: str) -> None:
        self._handle = DeltaHandle(spark, table_name)

    def _errors(self, doing: str) -> AbstractContextManager[None]:
        return jvm_errors(f"{doing} {self._handle.name}", table=self._handle.name)

    def facts(self, version: str | None = None) -> TableFacts:
        """The given version, or the newest. Schema and partitioning are always today's."""
        with self._errors("looking at"):
            return table_facts(self._handle, version)

    def version_at(self, moment: datetime) -> str | None:
        """By the commits that the log still has: none is newer than the one behind it, whatever their clocks say."""
        with self._errors("looking for a version of"):
            history = self._handle.spark.sql(f"DESCRIBE HISTORY delta.{quote(self._handle.location)}")
            commits = sorted(history.selectExpr("version", "unix_micros(timestamp) AS at").collect())
            micros = (moment - _EPOCH) // timedelta(microseconds=1)
            until = [str(commit.version) for commit in takewhile(lambda commit: commit.at <= micros, commits)]
            return until[-1] if until else None

    def files(self, version: str | None, predicate: Predicate) -> FileList:
        """Files of that version that can hold matching rows, from metadata alone."""
        if version is None:
            return FileList(None, ())
        with self._errors("listing files of"):
            found = self._handle.at(version).near(predicate)
            return FileList(version, tuple(each.ref for each in found.values()))

    def read(self, version: str | None, predicate: Predicate) -> DataFrame:
        """Exactly the matching rows of that version; an empty frame for none."""
        with self._errors("reading"):
            at = self._handle.at(version)
            if version is None:
                return at.frame(())
            rows = self._handle.spark.read.format("delta").option("versionAsOf", str(at.number)).load(at.root.path)
            return rows.where(to_column(predicate, at.layout.types)) if predicate.clauses else rows

    def lost(self, version: str | None, predicate: Predicate) -> str | None:
        """VACUUM takes files away, and the log still tells of the version that had them."""
        if version is None:
            return None
        with self._errors("looking for files of"):
            return lost_file(self._handle, version, predicate)

    def proven(self, version: str | None, predicate: Predicate, claims: Sequence[Claim]) -> frozenset[Claim]:
        """By the statistics of files that can hold matching rows."""
        if version is None or not claims:
            return frozenset(claims)
        with self._errors("looking at the statistics of"):
            at = self._handle.at(version)
            return proven(at.layout, (each.add for each in at.near(predicate).values()), claims)

    def read_files(self, version: str | None, paths: frozenset[str], near: Predicate) -> DataFrame:
        """Every row of exactly these files of a version; most of them match `near`."""
        with self._errors("reading files of"):
            at = self._handle.at(version)
            found = at.find(paths, near)
            if lacking := paths - found.keys():
                raise Drifted(f"{len(lacking)} files are not in version {version}", file=min(lacking))
            return at.frame(each.add for each in found.values())
