"""Batches of a stream on the live table: one commit each, found again by a tag that moves with it.

The tag lies on the newest batch and moves in the same commit. So expiry cannot take away the memory of what landed, as
it does that of Spark's own sink: compacted and expired, a table would take the last batch twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from backcast import faults
from backcast.errors import Conflict
from backcast.model.scope import EVERYTHING
from backcast.model.table import PublishMode, StageWrite
from backcast.ports.streams import LiveCommit, LiveWrite
from backcast.spark.gateway import NOT_LANDED, find_cause, is_jvm_error, jvm_errors
from backcast.spark.iceberg.expressions import to_expression
from backcast.spark.iceberg.files import data_files, stage_tasks
from backcast.spark.iceberg.handle import TableHandle, head_of, ref_of
from backcast.spark.predicates import quote
from backcast.targets.iceberg.commits import snapshots_between
from backcast.targets.iceberg.retries import COMMIT_ATTEMPTS, retrying
from backcast.targets.live import BATCH, OFFSETS, QUERY, STREAM, live_properties, refuse_repeat, unknown
from backcast.targets.merge import BESIDE, PLACE, MergePlan, incoming, merging_of, planned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MERGE_ATTEMPTS = 8
"""Each compares keys with the table once more, because somebody else's commit came first."""


class IcebergLive:
    """The port LiveTarget over an Iceberg table."""

    def __init__(self, spark: SparkSession, table: str) -> None:
        self._handle = TableHandle(spark, table)

    def head(self) -> str | None:
        with self._errors():
            return head_of(self._handle.load())

    def newest(self, stream: str, query_id: str, base: str | None) -> LiveCommit | None:
        with self._errors():
            return _newest(self._handle, self._handle.load(), stream, query_id, base)

    def write(self, write: LiveWrite, rows: DataFrame, ready: Callable[[], None]) -> LiveCommit:
        with self._errors():
            if write.merging is None:
                return _append(self._handle, write, rows, ready)
            return _merge(self._handle, write, rows, ready)

    def _errors(self) -> Any:
        return jvm_errors(f"writing a batch to {self._handle.name}", table=self._handle.name)


def stream_tag(stream: str) -> str:
    """Names of streams are free, names of tags are not: where they differ, a hash keeps two streams apart."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", stream)
    return f"backcast_stream_{plain}" + ("" if plain == stream else f"_{sha256(stream.encode()).hexdigest()[:8]}")


def _newest(handle: TableHandle, table: Any, stream: str, query_id: str, base: str | None) -> LiveCommit | None:
    """By the tag, if the table still goes back to it; else by every commit since the base."""
    tagged = ref_of(table, stream_tag(stream))
    head = head_of(table)
    if head is None:
        return None
    if tagged is not None:
        ancestry = handle.java("util.SnapshotUtil")
        if tagged == head or ancestry.isAncestorOf(table, int(head), int(tagged)) or not _reaches(table, head):
            return _told(table.snapshot(int(tagged)), stream, query_id)
    if base is None:
        return None
    since, whole = snapshots_between(table, head, base)
    found = next(filter(None, (_told(each, stream, query_id) for each in since)), None)
    if found is None and not whole and tagged is None:
        raise unknown(stream, handle.name, f"tag {stream_tag(stream)} is gone, and so are versions since {base}")
    return found


def _reaches(table: Any, head: str) -> bool:
    """Whether the way back from the head is whole: if it is cut by expiry, it cannot tell who is not an ancestor."""
    return snapshots_between(table, head, None)[1]


def _told(snapshot: Any, stream: str, query_id: str) -> LiveCommit | None:
    """What a snapshot says about itself; None when it is of somebody else."""
    summary = snapshot.summary()
    if summary.get(STREAM) != stream or summary.get(QUERY) != query_id:
        return None
    rows = int(summary.get("backcast.rows") or summary.get("added-records") or 0)
    return LiveCommit(int(summary.get(BATCH)), str(snapshot.snapshotId()), rows, summary.get(OFFSETS))


def _append(handle: TableHandle, write: LiveWrite, rows: DataFrame, ready: Callable[[], None]) -> LiveCommit:
    files = _write_files(handle, rows)
    ready()
    if not files:
        return LiveCommit(write.batch, None, 0, write.offsets)
    return _commit(handle, _Landing(write, files, lambda _table, _overwrite: None))


def _write_files(handle: TableHandle, rows: DataFrame) -> list[Any]:
    """The files that a job wrote, and nobody committed."""
    job = uuid4().hex
    written = handle.java("spark.FileRewriteCoordinator").get()
    rows.writeTo(handle.quoted).option("rewritten-file-scan-task-set-id", job).append()
    table = handle.load()
    try:
        return list(handle.items(written.fetchNewFiles(table, job)))
    finally:
        written.clearRewrite(table, job)


@dataclass(frozen=True, slots=True)
class _Landing:
    """What one commit does: files in, and whatever `take_out` says on the table that it lands on."""

    write: LiveWrite
    files: list[Any]
    take_out: Callable[[Any, Any], None]
    rows: int | None = None
    """Of the files, those that the batch brought; None: all."""
    attempts: int = COMMIT_ATTEMPTS


def _commit(handle: TableHandle, landing: _Landing) -> LiveCommit:
    """One compare-and-set on the table in which this batch was looked for: nobody can land it in between."""
    for attempt in retrying(landing.attempts):
        with attempt:
            _land(handle, landing)
    found = _newest(handle, handle.load(), landing.write.stream, landing.write.query_id, None)
    if found is None or found.batch != landing.write.batch:
        raise unknown(landing.write.stream, handle.name, "its tag moved right after the commit")
    return found


def _land(handle: TableHandle, landing: _Landing) -> None:
    write, table = landing.write, handle.load()
    refuse_repeat(write, _newest(handle, table, write.stream, write.query_id, None))
    transaction = table.newTransaction()
    if write.merging is None:
        change = transaction.newAppend()
        for data_file in landing.files:
            change.appendFile(data_file)
    else:
        change = transaction.newOverwrite()
        landing.take_out(table, change)
        for data_file in landing.files:
            change.addFile(data_file)
    told = live_properties(write) | ({} if landing.rows is None else {"backcast.rows": str(landing.rows)})
    for key, value in told.items():
        change.set(key, value)
    change.commit()
    version = transaction.table().currentSnapshot().snapshotId()
    tag = stream_tag(write.stream)
    refs = transaction.manageSnapshots()
    # Without an age of its own it would end by the table's.
    refs = refs.createTag(tag, version) if ref_of(table, tag) is None else refs.replaceTag(tag, version)
    refs.setMaxRefAgeMs(tag, 2**63 - 1).commit()
    faults.point("stream.before-commit")
    try:
        transaction.underlyingOps().commit(transaction.startMetadata(), transaction.currentMetadata())
    except Exception as error:
        # A catalog that repeats a statement whose answer was lost is refused by its own first one.
        landed = is_jvm_error(error) and find_cause(error, NOT_LANDED) and ref_of(handle.load(), tag) == str(version)
        if not landed:
            raise
    faults.point("stream.after-commit")


def _merge(handle: TableHandle, write: LiveWrite, rows: DataFrame, ready: Callable[[], None]) -> LiveCommit:
    """The files that hold a key which changes, written anew; compared again when somebody else's commit came first."""
    asked = StageWrite((), 0, EVERYTHING, exact=False, mode=PublishMode.MERGE, merging=write.merging)
    with incoming(asked, rows) as held:
        ready()
        for number in range(_MERGE_ATTEMPTS):
            try:
                return _merge_once(handle, write, asked, held)
            except Conflict as error:
                if number == _MERGE_ATTEMPTS - 1 or type(error) is not Conflict:
                    raise
        raise AssertionError("the last attempt returns or raises")


def _merge_once(handle: TableHandle, write: LiveWrite, asked: StageWrite, held: DataFrame) -> LiveCommit:
    table = handle.load()
    head = head_of(table)
    with planned(asked, held, _there(handle, head, asked, held)) as plan:
        if not plan.merged.written and not plan.places:
            return LiveCommit(write.batch, None, 0, write.offsets)
        everything = to_expression(handle, EVERYTHING, {})
        out = data_files(handle, table, head, everything) if plan.places and head is not None else {}
        files = _write_files(handle, _result(handle, table, head, plan))

        def take_out(now: Any, overwrite: Any) -> None:
            if head_of(now) != head:
                raise Conflict("the table moved during the merge", hint="it is compared again")
            for place in sorted(plan.places):
                overwrite.deleteFile(out[place])

        return _commit(handle, _Landing(write, files, take_out, rows=plan.merged.written, attempts=1))


def _result(handle: TableHandle, table: Any, head: str | None, plan: MergePlan) -> DataFrame:
    kept = None
    if plan.places and head is not None:
        tasks = stage_tasks(handle, table, head, plan.places, to_expression(handle, EVERYTHING, {}))
        kept = handle.spark.read.option("scan-task-set-id", tasks).table(handle.quoted)
    result = plan.result(kept, tuple(handle.types(table)))
    return result if table.spec().isPartitioned() else result.hint("rebalance")


def _there(handle: TableHandle, head: str | None, asked: StageWrite, held: DataFrame) -> DataFrame:
    """Key, version and file of the rows that the table has."""
    from pyspark.sql import functions as F

    merging = merging_of(asked)
    names = [F.col(quote(name)) for name in (*merging.key, merging.version)]
    if head is None:
        return held.limit(0).select(*names, F.lit("").alias(PLACE), F.lit(False).alias(BESIDE))
    rows = handle.spark.read.option("snapshot-id", head).table(handle.quoted)
    return rows.select(*names, F.col("_file").alias(PLACE), F.lit(False).alias(BESIDE))
