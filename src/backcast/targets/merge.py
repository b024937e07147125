"""A merge by key, whatever the format: which rows really change the table, and which of its files hold their keys.

Only those files are read and written again. So nothing is left behind that masks rows, whatever a table's properties
say about its own MERGE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest, Refused
from backcast.model.diff import MASK
from backcast.model.masked import hides
from backcast.model.scope import Predicate
from backcast.model.table import Merged, Merging, StageCommit, StageWrite
from backcast.model.words import many
from backcast.spark.predicates import quote, to_column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

PLACE, BESIDE = "backcast_place", "backcast_beside"
"""What a format tells of each row that the table has: the file it lies in, and whether that is out of scope."""

_NEWEST, _PLACES, _FATE, _NUMBER = "backcast_newest", "backcast_places", "backcast_fate", "backcast_number"
_INSERTED, _REPLACED, _REMOVED = "inserted", "replaced", "removed"
_STAYED, _ABSENT = "stayed", "absent"


def merging_of(write: StageWrite) -> Merging:
    if write.merging is None or not write.merging.key:
        raise InvalidRequest("a merge needs a key and a version column", hint="declare both on the dataset")
    return write.merging


def by_key(write: StageWrite) -> bool:
    """Whether the key alone tells if a row is in scope: then no row of the same key can lie out of it."""
    clauses = write.predicate.clauses
    return bool(clauses) and {each.column for each in clauses} <= set(merging_of(write).key)


def refuse_after_deletes(write: StageWrite, history: tuple[StageCommit, ...]) -> None:
    """What another chunk deleted left no trace: an older row of such a key would be taken for a new one."""
    for commit in history:
        if commit.merged is not None and commit.merged.deletes and commit.chunk_ids != write.chunk_ids:
            raise Refused(
                f"{', '.join(commit.chunk_ids)} deleted rows on this stage, which nothing can be merged after",
                hint="merge rows and deletes in one chunk",
            )


@contextmanager
def incoming(write: StageWrite, rows: DataFrame) -> Iterator[DataFrame]:
    """The rows, computed once however often they are asked for. Raises Refused when they cannot be merged."""
    held = rows.persist()
    try:
        _refuse(write, held)
        yield held
    finally:
        held.unpersist()


def _refuse(write: StageWrite, rows: DataFrame) -> None:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    merging, types = merging_of(write), dict(rows.dtypes)
    keys = [_column(name) for name in merging.key]
    lacking = _any([key.isNull() for key in keys])
    # Sorting costs less than a hash table with an entry for every row.
    number = F.row_number().over(Window.partitionBy(*keys).orderBy(F.lit(1)))
    strays = ~F.coalesce(to_column(write.predicate, types), F.lit(False))
    if not by_key(write):
        # A delete needs to tell nothing but its key: where the row lies that it takes away, the table knows.
        strays = strays & ~_deleted(merging)
    numbered = rows.withColumn(_NUMBER, number)
    problems = {
        "without a value in the key": lacking,
        f"without a value in {merging.version}": _column(merging.version).isNull() & ~lacking,
        "with a key that another one has too": (_column(_NUMBER) > 1) & ~lacking,
        "out of scope": strays & ~lacking,
    }
    counts = [F.count(F.when(found, 1)) for found in problems.values()]
    examples = [F.min(F.when(found, _told(merging))) for found in problems.values()]
    row = numbered.agg(*counts, *examples).collect()[0]
    for position, problem in enumerate(problems):
        if row[position]:
            example = row[position + len(problems)] or ""
            raise Refused(
                f"{many(row[position], 'row')} to merge {problem}" + (f", for example {example}" if example else ""),
                hint="a merge takes one row of each key, with a version, within its scope",
            )


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge does to the table as it is."""

    places: frozenset[str]
    """The files that hold a key which changes, as the format spells them."""
    merged: Merged
    merging: Merging
    decided: DataFrame

    def result(self, kept: DataFrame | None, columns: tuple[str, ...]) -> DataFrame:
        """What takes the place of those files: their other rows, and the rows that win."""
        keys, names = list(self.merging.key), [_column(name) for name in columns]
        winners = self.decided.where(_column(_FATE).isin(_INSERTED, _REPLACED)).select(*names)
        if kept is None:
            return winners
        gone = self.decided.where(_column(_FATE).isin(_REPLACED, _REMOVED)).select(*map(_column, keys))
        return kept.join(gone, keys, "left_anti").select(*names).unionByName(winners)


@contextmanager
def planned(write: StageWrite, rows: DataFrame, there: DataFrame) -> Iterator[MergePlan]:
    """Compare the rows with those of the table, given with its key, version, `PLACE` and `BESIDE`.

    Raises Refused when a key lies out of scope: the merge would leave it there and add a second row.
    """
    from pyspark.sql import functions as F

    merging = merging_of(write)
    keys = list(merging.key)
    mine = rows.select(*map(_column, keys))
    # A table may have a key twice; then both rows stay or both go.
    found = there.join(mine, keys, "left_semi").groupBy(*map(_column, keys))
    state = found.agg(
        F.max(_column(merging.version)).alias(_NEWEST),
        F.collect_set(PLACE).alias(_PLACES),
        F.max(BESIDE).alias(BESIDE),
    )
    decided = rows.join(state, keys, "left").withColumn(_FATE, _fate(merging)).persist()
    try:
        yield _plan(merging, decided)
    finally:
        decided.unpersist()


def _fate(merging: Merging) -> Column:
    from pyspark.sql import functions as F

    deleted, newest = _deleted(merging), _column(_NEWEST)
    return (
        F.when(_column(_PLACES).isNull() & deleted, _ABSENT)
        .when(_column(_PLACES).isNull(), _INSERTED)
        .when(newest.isNotNull() & (_column(merging.version) <= newest), _STAYED)
        .when(deleted, _REMOVED)
        .otherwise(_REPLACED)
    )


def _plan(merging: Merging, decided: DataFrame) -> MergePlan:
    from pyspark.sql import functions as F

    rows = (
        decided.groupBy(_FATE)
        .agg(
            F.count(F.lit(1)).alias("rows"),
            F.flatten(F.collect_set(_PLACES)).alias(_PLACES),
            F.min(F.when(_column(BESIDE), _told(merging))).alias(BESIDE),
        )
        .collect()
    )
    beside = min((row[BESIDE] for row in rows if row[BESIDE] is not None), default=None)
    if beside is not None:
        raise Refused(
            f"the table has keys of this merge out of its scope, for example {beside}",
            hint="merge without a window: where a row lies must follow from its key, or the whole table is in scope",
        )
    fates: Mapping[str, Row] = {row[_FATE]: row for row in rows}
    changed = (fates[name][_PLACES] for name in (_REPLACED, _REMOVED) if name in fates)
    return MergePlan(
        places=frozenset(place for places in changed for place in places),
        merged=Merged(**{name: row["rows"] for name, row in fates.items()}),
        merging=merging,
        decided=decided,
    )


def out_of(predicate: Predicate, types: Mapping[str, str]) -> Column:
    """Whether a row of the table lies out of scope, as `BESIDE`."""
    from pyspark.sql import functions as F

    return (~F.coalesce(to_column(predicate, types), F.lit(False))).alias(BESIDE)


def _deleted(merging: Merging) -> Column:
    from pyspark.sql import functions as F

    no = F.lit(False)
    return no if merging.deleted is None else F.coalesce(_column(merging.deleted), no)


def _any(conditions: list[Column]) -> Column:
    found = conditions[0]
    for each in conditions[1:]:
        found = found | each
    return found


def _told(merging: Merging) -> Column:
    """A key in words, without values of masked columns."""
    from pyspark.sql import functions as F

    def value(name: str) -> Column:
        return F.lit(MASK) if hides(merging.masked, name) else _column(name).cast("string")

    return F.concat_ws(", ", *(F.concat(F.lit(f"{name}="), value(name)) for name in merging.key))


def _column(name: str) -> Column:
    from pyspark.sql import functions as F

    return F.col(quote(name))
