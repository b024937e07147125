"""Chunks that one stage takes over from an earlier one of the same run: files change hands, no data is touched."""

from __future__ import annotations

import json
from typing import Any

from backcast import faults
from backcast.errors import Conflict, StateConflict
from backcast.model.table import Carry, Stage
from backcast.spark.gateway import NOT_LANDED, find_cause
from backcast.spark.iceberg.expressions import to_expression
from backcast.spark.iceberg.files import data_files
from backcast.spark.iceberg.handle import TableHandle, ref_of
from backcast.targets.iceberg.commits import CARRIED, RUN, history
from backcast.targets.iceberg.retries import WRITE_ATTEMPTS, retrying


def carry(handle: TableHandle, stage: Stage, wanted: Carry) -> None:
    """One commit on the branch, which fails when anybody else wrote to it meanwhile."""
    faults.point("restage.before-carry")
    try:
        for attempt in retrying(WRITE_ATTEMPTS):
            with attempt:
                if not _is_there(handle, stage, wanted):
                    _commit(handle, handle.load(), stage, wanted)
    except Exception as error:
        if find_cause(error, NOT_LANDED) is None:
            raise
        raise Conflict("the stage's commit lost the race against others", hint="run the same command again") from error
    faults.point("restage.after-carry")


def _is_there(handle: TableHandle, stage: Stage, wanted: Carry) -> bool:
    told = {(commit.token, commit.chunk_ids) for commit in history(handle, stage)}
    return told >= set(wanted.commits)


def _commit(handle: TableHandle, table: Any, stage: Stage, wanted: Carry) -> None:
    head = ref_of(table, stage.branch)
    if head is None:
        raise StateConflict(f"there is no branch {stage.branch}", hint="run the same command again")
    expression = to_expression(handle, wanted.predicate, handle.types(table))
    here, there = (data_files(handle, table, version, expression) for version in (head, wanted.source))
    overwrite = (
        table.newOverwrite()
        .toBranch(stage.branch)
        .validateFromSnapshot(int(head))
        .conflictDetectionFilter(handle.java("expressions.Expressions").alwaysTrue())
        .validateNoConflictingData()
        .validateNoConflictingDeletes()
    )
    for path in sorted(here.keys() - there.keys()):
        overwrite.deleteFile(here[path])
    for path in sorted(there.keys() - here.keys()):
        overwrite.addFile(there[path])
    overwrite.set(RUN, stage.run_id)
    overwrite.set(CARRIED, json.dumps(wanted.commits))
    overwrite.commit()
