"""Rows merged into a stage by their key: the files that hold a key which changes, written anew."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from backcast import faults
from backcast.errors import Conflict, StateConflict
from backcast.model.scope import EVERYTHING
from backcast.model.table import Stage, StageWrite
from backcast.ports import Turn
from backcast.spark.iceberg.expressions import to_expression
from backcast.spark.iceberg.files import data_files, stage_tasks
from backcast.spark.iceberg.handle import TableHandle, ref_of
from backcast.spark.predicates import quote, to_column
from backcast.targets.iceberg.commits import MERGED, history
from backcast.targets.iceberg.pace import seconds_to_wait
from backcast.targets.iceberg.replace import commit_files, write_files
from backcast.targets.merge import (
    BESIDE,
    PLACE,
    MergePlan,
    by_key,
    incoming,
    merging_of,
    out_of,
    planned,
    refuse_after_deletes,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def merge_files(handle: TableHandle, stage: Stage, write: StageWrite, rows: DataFrame, turn: Turn) -> None:
    """One commit, which lands on the version that was compared or not at all. Rows are computed before the turn."""
    with incoming(write, rows) as held, turn() as rest:
        rest(seconds_to_wait(handle.load(), stage))
        head = ref_of(handle.load(), stage.branch)
        if head is None:
            raise StateConflict(f"there is no branch {stage.branch}", hint="run the same command again")
        refuse_after_deletes(write, history(handle, stage))
        with planned(write, held, _there(handle, head, write)) as plan:
            _merge(handle, stage, write, head, plan)


def _merge(handle: TableHandle, stage: Stage, write: StageWrite, head: str, plan: MergePlan) -> None:
    table = handle.load()
    near = to_expression(handle, write.predicate if by_key(write) else EVERYTHING, handle.types(table))
    out = data_files(handle, table, head, near) if plan.places else {}

    def take_out(table: Any, overwrite: Any) -> None:
        if ref_of(table, stage.branch) != head:
            raise Conflict(f"branch {stage.branch} moved during the merge", hint="run the same command again")
        for place in sorted(plan.places):
            overwrite.deleteFile(out[place])

    files: list[Any] = []
    if plan.merged.written or plan.places:
        kept = None
        if plan.places:
            tasks = stage_tasks(handle, table, head, plan.places, near)
            kept = handle.spark.read.option("scan-task-set-id", tasks).table(handle.quoted)
        result = plan.result(kept, tuple(handle.types(table)))
        # Without partitions nothing brings rows together, and each task would write a file.
        files = write_files(handle, stage, write, result if table.spec().isPartitioned() else result.hint("rebalance"))
    faults.point("chunk.before-commit")
    commit_files(handle, stage, write, files, take_out, {MERGED: json.dumps(asdict(plan.merged))})


def _there(handle: TableHandle, head: str, write: StageWrite) -> DataFrame:
    """Key, version and file of the rows that the stage has."""
    from pyspark.sql import functions as F

    merging = merging_of(write)
    names = [F.col(quote(name)) for name in (*merging.key, merging.version)]
    rows = handle.spark.read.option("snapshot-id", head).table(handle.quoted)
    types = dict(rows.dtypes)
    if by_key(write):
        rows = rows.where(to_column(write.predicate, types))
        return rows.select(*names, F.col("_file").alias(PLACE), F.lit(False).alias(BESIDE))
    return rows.select(*names, F.col("_file").alias(PLACE), out_of(write.predicate, types))
