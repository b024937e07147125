"""Two frames compared at three levels: digests of parts, then columns and rows of the parts that differ.

When nothing changed each side is read once. Where something did, one job over those parts counts rows and cells; then
one looks up samples by their hashes while another sums up the columns that moved.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.util import inheritable_thread_target

from backcast.model.diff import ColumnDiff, Comparison, PartitionDiff, RowDiff
from backcast.model.digest import EMPTY, Digest
from backcast.model.words import many
from backcast.spark.diff_align import align, is_number
from backcast.spark.diff_cells import CHANGED, FORMAT_ONLY, TOLERATED
from backcast.spark.diff_parts import EVERY_ROW, ByPredicate, ByTime, Parts
from backcast.spark.diff_rows import (
    KIND,
    KINDS,
    NET,
    Found,
    doubled_keys,
    found_rows,
    joined,
    state,
    with_net,
)
from backcast.spark.diff_samples import sampled
from backcast.spark.diff_sides import HASH, KEY_HASH, PART, ROW, SIDE, Sides, types_of
from backcast.spark.diff_values import renamed, values_of
from backcast.spark.digest import digest_of_row

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, SparkSession

    from backcast.ports.comparing import Comparing


_One = TypeVar("_One")
_Other = TypeVar("_Other")


class SparkComparer:
    """The port Comparer on Spark. Holds no state."""

    def compare(self, left: DataFrame, right: DataFrame, asked: Comparing) -> Comparison:
        return compare(left, right, asked)

    def count(self, left: DataFrame, right: DataFrame, asked: Comparing) -> Comparison:
        return compare(left, right, replace(asked, columns=False, samples=0))

    def changed_rows(self, left: DataFrame, right: DataFrame, asked: Comparing) -> DataFrame:
        return changed_rows(left, right, asked)


def compare(left: DataFrame, right: DataFrame, asked: Comparing) -> Comparison:
    """Never raises because rows or schemas differ."""
    sides = _sides(left, right, asked)
    partitions = _partitions(sides, asked.known)
    changes = sides.alignment.changes
    if changes.added and changes.removed:
        changes = changes.model_copy(update={"renamed": renamed(left, right, changes)})
    differing = [each for each in partitions if each.status != "same"]
    notes = _notes(sides, asked)
    if not differing or not asked.rows:
        return Comparison(partitions=tuple(partitions), columns_changed=changes, notes=tuple(notes))
    sides = sides.restricted([each.chunk for each in differing])
    rows = sum(each.base.rows for each in differing), sum(each.stage.rows for each in differing)
    found = found_rows(sides, rows=rows, unique=asked.unique)
    if found.doubled:
        notes.append(f"{many(found.doubled, 'key')} more than once on a side: compared as multisets of whole rows")
    columns, samples = _side_by_side(
        left.sparkSession,
        lambda: _columns(sides, found) if asked.columns else [],
        lambda: sampled(sides, found, asked.samples) if asked.samples else [],
    )
    return Comparison(
        partitions=tuple(_counted(each, found) for each in partitions),
        columns_changed=changes,
        rows=RowDiff(
            **found.total.model_dump(),
            by="key" if sides.key else "rows",
            key=sides.key,
            doubled=found.doubled,
        ),
        columns=tuple(columns),
        samples=tuple(samples),
        notes=tuple(notes),
    )


def _side_by_side(spark: SparkSession, one: Callable[[], _One], other: Callable[[], _Other]) -> tuple[_One, _Other]:
    """Two looks at the same rows at once; one after the other where threads cannot have jobs of their own."""
    with_jobs_of_its_own: object = inheritable_thread_target(spark)
    if with_jobs_of_its_own is spark or not callable(with_jobs_of_its_own):
        return one(), other()
    with ThreadPoolExecutor(1, "diff") as beside:
        later = beside.submit(with_jobs_of_its_own(one))
        now = other()
        return later.result(), now


def changed_rows(left: DataFrame, right: DataFrame, asked: Comparing) -> DataFrame:
    """The rows that differ as a frame: `_change`, `_chunk`, `_times`, `_columns`, the key, `before` and `after`.

    Digests are computed at once, the rows only when somebody looks.
    """
    sides = _sides(left, right, asked)
    differing = [each.chunk for each in _partitions(sides, asked.known) if each.status != "same"]
    if differing:
        sides = sides.restricted(differing)
    here, there = (sides.hashed(each, sides.whole()) for each in (sides.left, sides.right))
    if not differing:
        here, there = here.where("false"), there.where("false")
    if not sides.key:
        return _multiset_frame(sides, here, there)
    if asked.unique:
        return _keyed_frame(sides, here, there)
    doubled = doubled_keys(here, there)
    once = [each.join(doubled, KEY_HASH, "left_anti") for each in (here, there)]
    twice = [each.join(doubled, KEY_HASH, "left_semi") for each in (here, there)]
    # By position: a key may be called as one of the columns that we add.
    return _keyed_frame(sides, *once).unionAll(_multiset_frame(sides, *twice))


def _keyed_frame(sides: Sides, left: DataFrame, right: DataFrame) -> DataFrame:
    names = [name for name in sides.schema.names if name not in sides.key]
    moved = [
        F.when(F.col(state(at)) > 0, F.lit(name)) for at, name in enumerate(sides.schema.names) if name not in sides.key
    ]
    kind = F.expr(f"CASE {KIND} {' '.join(f'WHEN {code} THEN {name!r}' for code, name in KINDS.items())} END")
    listed = F.array_compact(F.array(*moved)) if names else F.array().cast("array<string>")
    met = joined(sides, left, right).where(F.col(KIND).isin(*KINDS))
    known = F.coalesce(F.col(f"r_{ROW}"), F.col(f"l_{ROW}"))
    return met.select(
        kind.alias("_change"),
        F.expr(sides.parts.name_sql(PART)).alias("_chunk"),
        F.lit(1).cast("bigint").alias("_times"),
        listed.alias("_columns"),
        *_keys(sides, known),
        F.col(f"l_{ROW}").alias("before"),
        F.col(f"r_{ROW}").alias("after"),
    )


def _multiset_frame(sides: Sides, left: DataFrame, right: DataFrame) -> DataFrame:
    one = left.unionByName(right).dropDuplicates([PART, HASH])
    rows = with_net(one, left, right)
    added = F.col(NET) > 0
    return rows.select(
        F.when(added, "added").otherwise("removed").alias("_change"),
        F.expr(sides.parts.name_sql(PART)).alias("_chunk"),
        F.abs(NET).alias("_times"),
        F.array().cast("array<string>").alias("_columns"),
        *_keys(sides, F.col(ROW)),
        F.when(~added, F.col(ROW)).alias("before"),
        F.when(added, F.col(ROW)).alias("after"),
    )


def _keys(sides: Sides, row: Column) -> list[Column]:
    return [row.getField(name).alias(name) for name in sides.key]


def _sides(left: DataFrame, right: DataFrame, asked: Comparing) -> Sides:
    parts: Parts = ByPredicate(asked.parts) if asked.parts else EVERY_ROW
    if asked.by_time is not None:
        by_time = ByTime(*asked.by_time)
        parts = by_time if by_time.can_cut(types_of(left), types_of(right)) else EVERY_ROW
    return Sides(left, right, align(left.schema, right.schema, asked.rules.ignored), parts, asked.rules)


def _partitions(sides: Sides, known: Mapping[str, Digest] | None) -> list[PartitionDiff]:
    """What is known of the right side serves only when it is compared exactly as it is stored, column by column."""
    trusted = known is not None and sides.alignment.is_trivial and not sides.rules.ignored
    trusted = trusted and sides.left.columns == sides.right.columns
    if trusted and known is not None and all(each.is_current for each in known.values()):
        (before,), after = _digests(sides, sides.left), dict(known)
    else:
        before, after = _digests(sides, sides.left, sides.right)
    names = sides.parts.order({*before, *after})
    return [PartitionDiff(chunk=name, base=before.get(name, EMPTY), stage=after.get(name, EMPTY)) for name in names]


def _digests(sides: Sides, *asked: DataFrame) -> list[dict[str, Digest]]:
    """Of each side by part, in one query: what comes before and after its jobs is paid once."""
    found: list[dict[str, Digest]] = [{} for _ in asked]
    both = reduce(DataFrame.unionAll, (sides.digests(side, number) for number, side in enumerate(asked)))
    for row in both.collect():
        name = sides.parts.name(row[PART])
        if name is not None:
            found[row[SIDE]][name] = digest_of_row(row)
    return found


def _counted(partition: PartitionDiff, found: Found) -> PartitionDiff:
    if partition.status == "same" or partition.chunk not in found.counts:
        return partition
    return partition.model_copy(update={"rows": found.counts[partition.chunk]})


def _columns(sides: Sides, found: Found) -> list[ColumnDiff]:
    """All columns when rows came or went, else those of which a value changed."""
    total, keyed = found.total, bool(sides.key)
    everything = bool(total.added or total.removed)
    moved = [
        name
        for at, name in enumerate(sides.schema.names)
        if everything or any(found.cells[at][each] for each in (TOLERATED, FORMAT_ONLY, CHANGED))
    ]
    if not moved:
        return []
    before, after = values_of(sides, moved)
    told = []
    for at, each in enumerate(sides.schema.fields):
        if each.name in moved:
            cells = found.cells[at]
            told.append(
                ColumnDiff(
                    name=each.name,
                    type=each.dataType.simpleString(),
                    changed=cells[CHANGED] if keyed else None,
                    format_only=cells[FORMAT_ONLY],
                    tolerated=cells[TOLERATED],
                    base=before[each.name],
                    stage=after[each.name],
                )
            )
    return told


def _notes(sides: Sides, asked: Comparing) -> list[str]:
    notes = []
    if asked.rules.key and not sides.key:
        lacking = ", ".join(name for name in asked.rules.key if name not in sides.schema.names)
        notes.append(f"not both sides have {lacking} of the key: rows are compared as multisets")
    if asked.by_time is not None and sides.parts is EVERY_ROW:
        column = asked.by_time[0]
        notes.append(f"not cut by {column.column}: it is not {column.kind} on both sides")
    left_out = [name for name in sides.left.columns if name in asked.rules.ignored]
    if left_out:
        notes.append(f"not compared: {', '.join(left_out)}")
    kinds = {each.name: each.dataType for each in sides.schema.fields}
    notes += [
        f"the tolerance of {name} is not used: it is {kinds[name].simpleString()}, no number"
        for name in asked.rules.tolerance
        if name in kinds and not is_number(kinds[name])
    ]
    if asked.rules.tolerance and not sides.key:
        notes.append("tolerances are not used: without a key rows cannot be paired")
    if not sides.schema.names:
        notes.append("both sides have no column in common")
    return notes
