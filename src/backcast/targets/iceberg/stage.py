"""The stage: a branch at the base that only one run writes to, and that no reader of the table sees."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from backcast import faults
from backcast.errors import BackcastError, ChunkFailed, Conflict, SparkFailed, StateConflict
from backcast.model.table import Stage, StageCommit, StageWrite
from backcast.spark.gateway import find_cause, is_jvm_error, translate
from backcast.spark.iceberg.files import Specs
from backcast.spark.iceberg.handle import TableHandle, head_of, parent_of, ref_of, snapshot_of
from backcast.spark.predicates import to_column, to_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RUN, CHUNKS, TOKEN = "backcast.run", "backcast.chunks", "backcast.token"
_REF_ATTEMPTS = 20
_WRITE_ATTEMPTS = 4


def retrying(attempts: int) -> Retrying:
    """Try again after a commit that certainly did not land because somebody else's landed first."""
    return Retrying(
        retry=retry_if_exception(_lost_race),
        stop=stop_after_attempt(attempts),
        wait=wait_random_exponential(multiplier=0.05, max=2),
        reraise=True,
    )


def _lost_race(error: BaseException) -> bool:
    if not is_jvm_error(error):
        return False
    if find_cause(error, frozenset({"CommitFailedException"})):
        return True
    # Copy-on-write on Spark 4.0 gives up, before any commit, when the table object moved between planning and reading.
    moved = find_cause(error, frozenset({"IllegalStateException"}))
    return moved is not None and "concurrently modified" in moved.message


def open_stage(handle: TableHandle, stage: Stage) -> None:
    """Create what is missing of branch and base tag, in one commit. Iceberg itself never retries changes of refs."""
    for attempt in retrying(_REF_ATTEMPTS):
        with attempt:
            _open(handle, stage)


def _open(handle: TableHandle, stage: Stage) -> None:
    table = handle.load()
    if stage.base is None:
        _open_on_empty(handle, table, stage)
        return
    branch, tag = ref_of(table, stage.branch), ref_of(table, stage.base_tag)
    if tag not in (None, stage.base):
        raise StateConflict(f"tag {stage.base_tag} is at {tag}, not at the base {stage.base}", tag=stage.base_tag)
    if branch is not None and tag is not None:
        return
    base = int(snapshot_of(table, stage.base).snapshotId())
    update = table.manageSnapshots()
    if branch is None:
        update = update.createBranch(stage.branch, base)
    if tag is None:
        update = update.createTag(stage.base_tag, base)
    update.commit()


def _open_on_empty(handle: TableHandle, table: Any, stage: Stage) -> None:
    """A branch of a table without snapshots starts with an empty snapshot of its own, which must have no parent."""
    if ref_of(table, stage.branch) is not None:
        return
    if head_of(table) is None:
        table.newFastAppend().toBranch(stage.branch).commit()
        table = handle.load()
        if parent_of(table.snapshot(stage.branch)) is None:
            return
        table.manageSnapshots().removeBranch(stage.branch).commit()
    raise Conflict(
        f"{handle.name} was empty when the run was planned and is not any more", hint="plan again", table=handle.name
    )


def write_stage(handle: TableHandle, stage: Stage, write: StageWrite, rows: DataFrame) -> StageCommit:
    """Replace the predicate's rows on the branch. A lost race repeats the job; anything else fails the chunks."""
    faults.point("chunk.before-commit")
    act = _write_exact if write.exact else _write_aligned
    try:
        for attempt in retrying(_WRITE_ATTEMPTS):
            with attempt:
                act(handle, stage, write, rows)
    except Exception as error:
        failure = _write_failure(error, write)
        if failure is None:
            raise
        raise failure from error
    faults.point("chunk.after-commit")
    return _find(handle, stage, write)


def _write_aligned(handle: TableHandle, stage: Stage, write: StageWrite, rows: DataFrame) -> None:
    where = to_column(write.predicate, handle.types(handle.load()))
    _writer(handle, stage, write, rows).overwrite(where)


def _write_exact(handle: TableHandle, stage: Stage, write: StageWrite, rows: DataFrame) -> None:
    """Two commits: only the second carries the token, so that a stage cut short between them counts as not written."""
    where = to_sql(write.predicate, handle.types(handle.load()))
    handle.spark.sql(f"DELETE FROM {handle.branch(stage.branch)} WHERE {where}")
    _writer(handle, stage, write, rows).append()


def _writer(handle: TableHandle, stage: Stage, write: StageWrite, rows: DataFrame) -> Any:
    properties = {RUN: stage.run_id, CHUNKS: json.dumps(write.chunk_ids), TOKEN: str(write.token)}
    writer = rows.writeTo(handle.branch(stage.branch))
    for key, value in properties.items():
        writer = writer.option(f"snapshot-property.{key}", value)
    return writer


_OUR_STORAGE = frozenset({"SparkFailed", "Unavailable", "UnknownName"})


def _write_failure(error: Exception, write: StageWrite) -> BackcastError | None:
    """A transform is lazy: what it raises comes up here, inside Spark's job."""
    failure = translate(error, "writing to the stage")
    if failure is None or find_cause(error, frozenset({"SparkException"})) is None:
        return failure
    if type(failure).__name__ == "Unavailable":
        return failure
    return ChunkFailed(failure.message, hint="see the run's log, repair, then `backcast retry`", chunks=",".join(write.chunk_ids))


def stage_snapshots(table: Any, start: str, base: str | None) -> tuple[list[Any], bool]:
    """Snapshots from `start` back to the base, newest first without the base; and whether none in between is missing."""
    found: list[Any] = []
    version: str | None = start
    while version is not None and version != base:
        snapshot = table.snapshot(int(version))
        if snapshot is None:
            return found, False
        found.append(snapshot)
        version = parent_of(snapshot)
    return found, version == base


def history(handle: TableHandle, stage: Stage) -> tuple[StageCommit, ...]:
    """Commits of this run on its branch, oldest first, with the files each added."""
    table = handle.load()
    commits = [_commit(handle, table, snapshot) for snapshot in _own_snapshots(table, stage)]
    return tuple(reversed(commits))


def _find(handle: TableHandle, stage: Stage, write: StageWrite) -> StageCommit:
    """The newest commit with the write's token. Never the branch's head as such: somebody may have been there since."""
    table = handle.load()
    for snapshot in _own_snapshots(table, stage):
        if snapshot.summary().get(TOKEN) == str(write.token):
            return _commit(handle, table, snapshot)
    raise SparkFailed(
        f"the commit of token {write.token} is not on branch {stage.branch}", hint="run the same command again", token=write.token
    )


def _own_snapshots(table: Any, stage: Stage) -> Iterator[Any]:
    head = ref_of(table, stage.branch)
    if head is not None:
        for snapshot in stage_snapshots(table, head, stage.base)[0]:
            if snapshot.summary().get(RUN) == stage.run_id:
                yield snapshot


def _commit(handle: TableHandle, table: Any, snapshot: Any) -> StageCommit:
    summary, specs = snapshot.summary(), Specs(table)
    added = handle.items(changes_of(handle, table, snapshot).addedDataFiles())
    return StageCommit(
        version=str(snapshot.snapshotId()),
        chunk_ids=tuple(json.loads(summary.get(CHUNKS) or "[]")),
        token=int(summary.get(TOKEN) or 0),
        rows=int(summary.get("added-records") or 0),
        added=tuple(specs.ref(each) for each in added),
    )


def changes_of(handle: TableHandle, table: Any, snapshot: Any) -> Any:
    """Files added and removed by one snapshot; removed ones come without column statistics."""
    return handle.java("SnapshotChanges").builderFor(table).snapshot(snapshot).build()


Act = Callable[[TableHandle, Stage, StageWrite, "DataFrame"], None]
