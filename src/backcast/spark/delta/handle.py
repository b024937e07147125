"""One Delta table, always in its newest state, and the stages that lie in its folder."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from backcast.errors import Drifted, InvalidRequest, UnknownName
from backcast.model.scope import Predicate
from backcast.model.table import FileRef
from backcast.spark.delta.bounds import FileBounds, partition_clauses
from backcast.spark.delta.commit import read_commit
from backcast.spark.delta.jvm import DeltaJvm
from backcast.spark.delta.layout import Layout
from backcast.spark.delta.log_store import configured_store, keeps_processes_apart
from backcast.spark.delta.paths import TableRoot
from backcast.spark.delta.scope_files import ScopeFiles
from backcast.spark.gateway import find_cause
from backcast.spark.predicates import quote, to_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STAGES = "_backcast"
"""The folder in a table's root that holds stages. VACUUM passes by folders with such a name."""

_BY_PATH = re.compile(r"delta\.`([^`]+)`")
_STAGE_VERSION = re.compile(r"(?P<branch>[A-Za-z0-9_-]+)@(?P<version>\d+)")
_ACTION = "backcast_action"
_FEW_COMMITS, _SMALL_LOG = 10, 1024 * 1024
"""Commits, and bytes of them, that are read faster than a job is started."""
_GONE = frozenset({"VersionNotFoundException", "DeltaFileNotFoundException", "FileNotFoundException"})


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file of one version: how we know it, and the log's own action."""

    ref: FileRef
    add: dict[str, Any]

    @property
    def vector(self) -> str:
        """Which deletion vector applies; empty for none."""
        return repr(sorted((self.add.get("deletionVector") or {}).items()))


class DeltaHandle:
    """A name and a session. Remembers files of versions, which never change, and never which version is the head."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        by_path = _BY_PATH.fullmatch(name)
        if by_path is None and len(name.split(".")) < 2:
            raise InvalidRequest(f"{name!r} is not a Delta table", hint="write delta.`/path` or catalog.schema.table")
        self.spark, self.name = spark, name
        self.jvm = DeltaJvm(spark)
        self._path = by_path[1] if by_path else None
        self._scopes: dict[bytes, ScopeFiles] = {}

    @cached_property
    def location(self) -> str:
        """Where the table lies, decoded."""
        if self._path is not None:
            return self._path
        quoted = ".".join(quote(part) for part in self.name.split("."))
        rows = self.spark.sql(f"DESCRIBE DETAIL {quoted}").select("format", "location").collect()
        if rows[0]["format"] != "delta":
            raise InvalidRequest(f"{self.name} is a table of format {rows[0]['format']}, not delta", table=self.name)
        return TableRoot(rows[0]["location"].rstrip("/")).path

    @cached_property
    def log(self) -> Any:
        return self.jvm.log(self.location)

    @cached_property
    def root(self) -> TableRoot:
        return self.jvm.root(self.log)

    @cached_property
    def log_store(self) -> str:
        """The class that the session names for this table's log; empty when Delta chooses."""
        return configured_store(self.root.scheme, lambda key: str(self.spark.conf.get(key, "")))

    @property
    def keeps_processes_apart(self) -> bool:
        """Whether of two processes that land the same version one is told so, and none loses its commit."""
        return keeps_processes_apart(self.root.scheme, self.log_store)

    def scope_files(self, scope: Predicate) -> ScopeFiles:
        """What is known about this scope's files at versions of the live table."""
        return self._scopes.setdefault(scope.canonical(), ScopeFiles(self.jvm, scope))

    def stage_log(self, branch: str) -> Any:
        return self.jvm.log(f"{self.root.path}/{STAGES}/{branch}")

    def at(self, version: str | None = None) -> Version:
        """A version of the table, the newest without one, or of a stage, as `branch@number`."""
        staged = _STAGE_VERSION.fullmatch(version) if version is not None else None
        if staged is not None:
            return self._open(self.stage_log(staged["branch"]), int(staged["version"]), staged["branch"])
        if version is not None and not version.isdigit():
            raise _gone(self.name, version)
        return self._open(self.log, None if version is None else int(version), None)

    def _open(self, log: Any, version: int | None, branch: str | None) -> Version:
        try:
            snapshot = self.jvm.snapshot(log, version)
        except Exception as error:
            if find_cause(error, _GONE) is None and not _never_was(error):
                raise
            raise _gone(self.name, str(version)) from error
        if self.jvm.number(snapshot) < 0:
            raise UnknownName(f"there is no Delta table at {self.root.path}", hint="check `path` of the dataset")
        return Version(self, log, snapshot, branch)


class Version:
    """One version of a table or of a stage."""

    def __init__(self, handle: DeltaHandle, log: Any, snapshot: Any, branch: str | None) -> None:
        self._handle, self.log, self.snapshot, self.branch = handle, log, snapshot, branch
        self.number = handle.jvm.number(snapshot)
        self.root = handle.jvm.root(log)

    @property
    def committed_at(self) -> datetime:
        return datetime.fromtimestamp(self._handle.jvm.committed_at(self.snapshot) / 1000, UTC)

    @property
    def name(self) -> str:
        return str(self.number) if self.branch is None else f"{self.branch}@{self.number}"

    @cached_property
    def layout(self) -> Layout:
        jvm = self._handle.jvm
        return Layout(jvm.metadata(self.snapshot), jvm.protocol(self.snapshot))

    def files(self, predicate: Predicate) -> dict[str, DataFile]:
        """Files that can hold matching rows, by path."""
        bounds = FileBounds(self.layout, predicate)
        followed = self.branch is not None or self._is_young()
        listed = self._followed() if followed else self._listed(predicate)
        return {each.ref.path: each for each in listed if bounds.may_hold_any(each.add)}

    def near(self, predicate: Predicate) -> dict[str, DataFile]:
        """The same, remembered for as long as the handle lives."""
        return self.files(predicate) if self.branch is not None else self._handle.scope_files(predicate).at(self)

    def find(self, paths: frozenset[str], near: Predicate) -> dict[str, DataFile]:
        """Those of the files that the version has, and of a stage also those that it was opened with.

        All is listed only when the files near by are not enough: those of an exact scope may hold nothing but rows that
        were carried over, and then lie beside it.
        """
        found: dict[str, DataFile] = {}
        ways: tuple[Callable[[], dict[str, DataFile]], ...] = (
            lambda: self.near(near),
            lambda: self.files(Predicate()),
            self._opened_with,
        )
        for listed in ways:
            if paths <= found.keys():
                break
            found |= listed()
        return {path: found[path] for path in paths & found.keys()}

    def _opened_with(self) -> dict[str, DataFile]:
        """What a stage took over from its base says so also when the base's own log was cleaned."""
        first = read_commit(self._handle.jvm, self.log, 0) if self.branch is not None else None
        return {} if first is None else {each.ref.path: each for each in map(self.data_file, first.adds)}

    def data_file(self, add: dict[str, Any]) -> DataFile:
        stats = json.loads(add.get("stats") or "{}")
        return DataFile(
            FileRef(
                path=self.root.canonical(add["path"]),
                partition=self.layout.partition_path(add.get("partitionValues") or {}),
                rows=int(stats.get("numRecords") or 0),
                size=int(add["size"]),
                deletes=1 if add.get("deletionVector") else 0,
            ),
            add,
        )

    def fence(self, fence: str) -> int | None:
        """The number beside the newest commit with that fence; None when none has landed."""
        return self._handle.jvm.fence(self.snapshot, fence)

    def frame(self, adds: Iterable[dict[str, Any]]) -> DataFrame:
        return self._handle.jvm.frame(self.log, self.snapshot, adds)

    def _is_young(self) -> bool:
        """Whether all commits are there, few and small: reading them costs less than the job that lists them."""
        if self.number >= _FEW_COMMITS:
            return False
        stamps = [self._handle.jvm.stamp(self.log, number) for number in range(self.number + 1)]
        return all(stamps) and sum(stamp[2] for stamp in stamps if stamp) <= _SMALL_LOG

    def _followed(self) -> Iterable[DataFile]:
        """Files from few commits: a stage has no checkpoint, and a Spark job would read the same."""
        files: dict[str, dict[str, Any]] = {}
        for number in range(self.number + 1):
            commit = read_commit(self._handle.jvm, self.log, number)
            if commit is None:
                raise _gone(self._handle.name, self.name)
            for each in commit.removes:
                files.pop(self.root.canonical(each["path"]), None)
            files |= {self.root.canonical(each["path"]): each for each in commit.adds}
        return (self.data_file(each) for each in files.values())

    def _listed(self, predicate: Predicate) -> Iterable[DataFile]:
        """The log's files, cut down by partition values inside Spark."""
        from pyspark.sql import functions as F

        layout, listed = self.layout, self._handle.jvm.files(self.snapshot)
        values = [
            F.col("partitionValues")[layout.physical[name]].cast(layout.types[name]).alias(name)
            for name in layout.partition_columns
        ]
        condition = to_sql(partition_clauses(layout, predicate), layout.types)
        rows = listed.select(F.to_json(F.struct("*")).alias(_ACTION), *values).where(condition).select(_ACTION)
        return (self.data_file(json.loads(row[0])) for row in rows.collect())


def _never_was(error: Exception) -> bool:
    found = find_cause(error, frozenset({"IllegalStateException"}))
    return found is not None and "non-existent version" in found.message


def _gone(name: str, version: str) -> Drifted:
    return Drifted(
        f"version {version} of {name} is gone",
        hint="its log was cleaned or the table was replaced: plan again",
        version=version,
    )
