"""Batches of a stream on the live table: one commit each, with query and batch as its transaction id.

Delta keeps the newest version of every id in the table's state, so what landed is known however much of the log is
cleaned away.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from backcast import faults
from backcast.errors import Refused
from backcast.model.scope import EVERYTHING
from backcast.model.table import PublishMode, StageWrite
from backcast.ports.streams import LiveCommit, LiveWrite
from backcast.spark.delta.commit import read_commit, removal
from backcast.spark.delta.fit import committing_problem
from backcast.spark.delta.handle import DataFile, DeltaHandle, Version
from backcast.spark.gateway import jvm_errors
from backcast.spark.predicates import quote
from backcast.targets.delta.exact import by_partition, retrying, write_files
from backcast.targets.live import BATCH, OFFSETS, live_properties, refuse_repeat
from backcast.targets.merge import BESIDE, PLACE, incoming, merging_of, planned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOOK_BACK = 200
"""Commits behind the newest in which one of a stream is looked for, to tell its version and offsets."""


class DeltaLive:
    """The port LiveTarget over a Delta table."""

    def __init__(self, spark: SparkSession, table: str) -> None:
        self._handle = DeltaHandle(spark, table)

    def head(self) -> str | None:
        with self._errors():
            return self._handle.at().name

    def newest(self, stream: str, query_id: str, base: str | None) -> LiveCommit | None:
        del base  # The table's state knows every transaction id, whatever became of the log.
        with self._errors():
            return _newest(self._handle, self._handle.at(), stream, query_id)

    def write(self, write: LiveWrite, rows: DataFrame, ready: Callable[[], None]) -> LiveCommit:
        with self._errors():
            problem = committing_problem(self._handle.jvm)
            if problem is not None:
                hint = "use a version of delta-spark that is proven: backcast doctor"
                raise Refused(f"a stream commits exact files, and {problem}", hint=hint)
            if write.merging is None:
                return _append(self._handle, write, rows, ready)
            return _merge(self._handle, write, rows, ready)

    def _errors(self) -> Any:
        return jvm_errors(f"writing a batch to {self._handle.name}", table=self._handle.name)


def _id(stream: str, query_id: str) -> str:
    """A new checkpoint is a new query and counts its batches from 0: with the same id they would be skipped."""
    return f"backcast:stream:{stream}:{query_id}"


def _newest(handle: DeltaHandle, head: Version, stream: str, query_id: str) -> LiveCommit | None:
    batch = head.fence(_id(stream, query_id))
    if batch is None:
        return None
    for number in range(head.number, max(-1, head.number - _LOOK_BACK), -1):
        commit = read_commit(handle.jvm, head.log, number)
        if commit is None:
            break
        if _id(stream, query_id) in commit.fences and commit.note.get(BATCH) == str(batch):
            return LiveCommit(batch, str(number), int(commit.note.get("backcast.rows", 0)), commit.note.get(OFFSETS))
    return LiveCommit(batch, None, 0, None)


@dataclass(frozen=True, slots=True)
class _Landing:
    """What one commit does: files in, and files out of the version that it must land on."""

    write: LiveWrite
    come: list[dict[str, Any]]
    rows: int
    gone: tuple[DataFile, ...] = ()


def _append(handle: DeltaHandle, write: LiveWrite, rows: DataFrame, ready: Callable[[], None]) -> LiveCommit:
    come = write_files(handle, handle.at(), rows)
    ready()
    if not come:
        return LiveCommit(write.batch, None, 0, write.offsets)
    landing = _Landing(write, come, sum(_rows(add) for add in come))
    for attempt in retrying():
        with attempt:
            version = _land(handle, handle.at(), landing)
    return LiveCommit(write.batch, str(version), landing.rows, write.offsets)


def _rows(add: dict[str, Any]) -> int:
    return int(json.loads(add.get("stats") or "{}").get("numRecords") or 0)


def _land(handle: DeltaHandle, here: Version, landing: _Landing) -> int:
    write, now = landing.write, int(time.time() * 1000)
    transaction = handle.jvm.transaction(here.log, here.snapshot)
    done = handle.jvm.read_fence(transaction, _id(write.stream, write.query_id))
    if done is not None and done >= write.batch:
        refuse_repeat(write, LiveCommit(done, None, 0, None))
    if write.merging is not None:
        handle.jvm.register_read(transaction, None)
    actions = [
        *(removal(file.add, now) for file in landing.gone),
        *({"add": {**add, "dataChange": True}} for add in landing.come),
        {"txn": {"appId": _id(write.stream, write.query_id), "version": write.batch, "lastUpdated": now}},
    ]
    note = json.dumps(live_properties(write) | {"backcast.rows": str(landing.rows)}, sort_keys=True)
    faults.point("stream.before-commit")
    version = handle.jvm.commit(transaction, actions, note, appends=write.merging is None)
    faults.point("stream.after-commit")
    return version


def _merge(handle: DeltaHandle, write: LiveWrite, rows: DataFrame, ready: Callable[[], None]) -> LiveCommit:
    """The files that hold a key which changes, written anew; compared again when somebody else's commit came first."""
    asked = StageWrite((), 0, EVERYTHING, exact=False, mode=PublishMode.MERGE, merging=write.merging)
    with incoming(asked, rows) as held:
        ready()
        for attempt in retrying():
            with attempt:
                commit = _merge_once(handle, write, asked, held)
        return commit


def _merge_once(handle: DeltaHandle, write: LiveWrite, asked: StageWrite, held: DataFrame) -> LiveCommit:
    here = handle.at()
    with planned(asked, held, _there(handle, here, asked)) as plan:
        if not plan.merged.written and not plan.places:
            return LiveCommit(write.batch, None, 0, write.offsets)
        files = here.files(EVERYTHING)
        gone = tuple(files[path] for path in sorted({here.root.canonical(place) for place in plan.places}))
        kept = here.frame(file.add for file in gone) if gone else None
        result = plan.result(kept, tuple(here.layout.types))
        come = write_files(handle, here, by_partition(here, result))
        version = _land(handle, here, _Landing(write, come, plan.merged.written, gone))
        return LiveCommit(write.batch, str(version), plan.merged.written, write.offsets)


def _there(handle: DeltaHandle, here: Version, asked: StageWrite) -> DataFrame:
    """Key, version and file of the rows that the table has."""
    from pyspark.sql import functions as F

    merging = merging_of(asked)
    names = [F.col(quote(name)) for name in (*merging.key, merging.version)]
    rows = handle.spark.read.format("delta").option("versionAsOf", str(here.number)).load(here.root.path)
    return rows.select(*names, F.col("_metadata.file_path").alias(PLACE), F.lit(False).alias(BESIDE))
