"""Exact files on a stage: a job writes them without a commit, and one commit takes some out and puts these in."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from backcast.errors import Refused, StateConflict
from backcast.model.table import Merged, Stage, StageWrite
from backcast.spark.delta.commit import removal
from backcast.spark.delta.fit import committing_problem
from backcast.spark.delta.handle import DataFile, DeltaHandle, Version
from backcast.spark.gateway import find_cause, is_jvm_error
from backcast.spark.predicates import quote
from backcast.targets.delta.commits import stage_commits, stage_note
from backcast.targets.delta.publish import NOT_LANDED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ATTEMPTS = 20


def retrying() -> Retrying:
    """Try a commit again that lost the race against somebody else's."""
    return Retrying(
        retry=retry_if_exception(lambda error: is_jvm_error(error) and find_cause(error, NOT_LANDED) is not None),
        stop=stop_after_attempt(_ATTEMPTS),
        wait=wait_random_exponential(multiplier=0.05, max=2),
        reraise=True,
    )


def newest(handle: DeltaHandle, stage: Stage) -> Version:
    """The stage as it is now. Raises when there is none, or when exact files cannot be committed to it."""
    problem = committing_problem(handle.jvm)
    if problem is not None:
        raise Refused(
            f"modes append and merge commit exact files, and {problem}",
            hint="use a version of delta-spark that is proven, or mode replace",
        )
    return stage_now(handle, stage)


def stage_now(handle: DeltaHandle, stage: Stage) -> Version:
    """Its newest version. Raises when there is none: Delta would make it anew, for who outlived a cancelled run."""
    log = handle.stage_log(stage.branch)
    if not handle.jvm.has_commit(log, 0):
        raise StateConflict(f"there is no stage {stage.branch}", hint="run the same command again")
    return Version(handle, log, handle.jvm.snapshot(log, None), stage.branch)


def by_partition(here: Version, rows: DataFrame) -> DataFrame:
    """Delta brings no rows together by itself, and each task would write a file for each of its partitions."""
    from pyspark.sql import functions as F

    return rows.hint("rebalance", *(F.col(quote(name)) for name in here.layout.partition_columns))


def write_files(handle: DeltaHandle, here: Version, rows: DataFrame) -> list[dict[str, Any]]:
    """The add actions of files that a job wrote, and nobody committed."""
    wanted, have = here.layout.types, dict(rows.dtypes)
    if have != wanted:
        # Delta's own writer would cast; this one writes what it gets.
        differing = sorted(set(have.items()) ^ set(wanted.items()))
        raise Refused(f"the rows' columns are not the table's: {differing[0][0]} is {differing[0][1]}")
    transaction = handle.jvm.transaction(here.log, here.snapshot)
    return handle.jvm.write_files(transaction, rows.select(*map(quote, wanted)))


def commit_files(
    handle: DeltaHandle,
    stage: Stage,
    write: StageWrite,
    here: Version,
    come: Iterable[dict[str, Any]],
    gone: Iterable[DataFile],
    merged: Merged | None = None,
    where: str | None = None,
) -> None:
    """Land on that version of the stage, or raise what Delta raises when somebody else wrote to it since.

    With a condition only what is written under it matters. Does nothing when a commit with this token has landed.
    """
    fence = f"backcast:{stage.run_id}:{write.token}"
    # Asked of the log: Delta would compute the stage's whole state to answer.
    if any(fence in commit.fences for commit in stage_commits(handle, here)):
        return
    transaction = handle.jvm.transaction(here.log, here.snapshot)
    handle.jvm.register_fence(transaction, fence)
    handle.jvm.register_read(transaction, where)
    now = int(time.time() * 1000)
    actions = [
        *(removal(file.add, now) for file in gone),
        *({"add": add} for add in come),
        {"txn": {"appId": fence, "version": 1, "lastUpdated": now}},
    ]
    handle.jvm.commit(transaction, actions, stage_note(stage.run_id, write.chunk_ids, write.token, merged))
