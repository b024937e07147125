"""Rows merged into a stage by their key: the files that hold a key which changes, written anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from backcast import faults
from backcast.model.scope import EVERYTHING
from backcast.model.table import Stage, StageWrite
from backcast.ports import Turn
from backcast.spark.delta.commit import read_commit
from backcast.spark.delta.handle import DeltaHandle, Version
from backcast.spark.predicates import quote, to_column
from backcast.targets.delta.commits import history
from backcast.targets.delta.exact import by_partition, commit_files, newest, write_files
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


def merge_files(handle: DeltaHandle, stage: Stage, write: StageWrite, rows: DataFrame, turn: Turn) -> None:
    """One commit, which lands on the version that was compared or not at all. Rows are computed before the turn."""
    newest(handle, stage)
    with incoming(write, rows) as held, turn():
        here = newest(handle, stage)
        refuse_after_deletes(write, history(handle, stage))
        with planned(write, held, _there(handle, stage, here, write)) as plan:
            _merge(handle, stage, write, here, plan)


def _merge(handle: DeltaHandle, stage: Stage, write: StageWrite, here: Version, plan: MergePlan) -> None:
    files = here.files(EVERYTHING)
    gone = [files[path] for path in sorted({here.root.canonical(place) for place in plan.places})]
    come: list[dict[str, Any]] = []
    if plan.merged.written or gone:
        kept = here.frame(file.add for file in gone) if gone else None
        result = plan.result(kept, tuple(here.layout.types))
        come = write_files(handle, here, by_partition(here, result))
    faults.point("chunk.before-commit")
    commit_files(handle, stage, write, here, come, gone, plan.merged)


def _there(handle: DeltaHandle, stage: Stage, here: Version, write: StageWrite) -> DataFrame:
    """Key, version and file of the rows that the stage has; and of those that it was opened without."""
    from pyspark.sql import functions as F

    merging, types = merging_of(write), here.layout.types
    names = [F.col(quote(name)) for name in (*merging.key, merging.version)]
    rows = handle.spark.read.format("delta").option("versionAsOf", str(here.number)).load(here.root.path)
    place, nowhere = F.col("_metadata.file_path").alias(PLACE), F.lit("").alias(PLACE)
    if by_key(write):
        within = rows.where(to_column(write.predicate, types))
        return within.select(*names, place, F.lit(False).alias(BESIDE))
    found = rows.select(*names, place, out_of(write.predicate, types))
    elsewhere = _not_cloned(handle, stage, here)
    return (
        found if elsewhere is None else found.unionByName(elsewhere.select(*names, nowhere, F.lit(True).alias(BESIDE)))
    )


def _not_cloned(handle: DeltaHandle, stage: Stage, here: Version) -> DataFrame | None:
    """What the base has beside the scope that the stage was opened with; None for nothing."""
    first = read_commit(handle.jvm, here.log, 0)
    cloned = {here.root.canonical(add["path"]) for add in first.adds} if first is not None else set()
    base = handle.at(stage.base)
    left = [file.add for path, file in handle.scope_files(EVERYTHING).at(base).items() if path not in cloned]
    return base.frame(left) if left else None
