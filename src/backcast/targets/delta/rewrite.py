"""The way around calls that are not proven: the scope's rows are written once more, by Delta's own `replaceWhere`.

`replaceWhere` removes whatever its transaction finds in the scope, and cannot be told what it should find. So the query
whose rows it writes reads the live table too. Delta plans that read inside the transaction, on its snapshot, and the
query fails when a row is not where it was when the decision was taken. What lands after that snapshot, Delta refuses.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import uuid4

from backcast import faults
from backcast.errors import Conflict, OutcomeUnknown, Refused
from backcast.model.scope import Predicate
from backcast.model.table import Change, Rewrite
from backcast.spark.delta.commit import read_commit
from backcast.spark.delta.handle import DeltaHandle, Version
from backcast.spark.gateway import causes, is_jvm_error
from backcast.spark.predicates import to_column, to_sql
from backcast.targets.delta.findings import refuse_unfit
from backcast.targets.delta.publish import NO_HEAD, landed_before, live_add, outcome, probe, refuse_repeat
from backcast.targets.delta.replace_where import replace_where
from backcast.targets.delta.swap import Swap, checked

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_ATTEMPT = "backcast.rewrite"
"""In the note of such a commit: which attempt made it."""

_MOVED = "backcast-scope-moved"
_PLACE, _SIGN = "backcast_place", "backcast_sign"
_ZONE = "spark.sql.session.timeZone"
_VECTORS = "spark.databricks.delta.delete.deletionVectors.persistent"


def commit(handle: DeltaHandle, change: Change) -> str:
    """Land the change's rows and return the new version. Rows beside the scope in the same files Delta carries over."""
    refuse_repeat(handle, change.fence)
    swap = checked(handle, change)
    refuse_unfit(handle.name, swap.head.layout)
    attempt = uuid4().hex
    note = json.dumps({**change.properties, _ATTEMPT: attempt}, sort_keys=True)
    where = to_sql(change.scope, swap.head.layout.types)
    # Its version must not depend on the head: a fence that landed with another one would not stop this write.
    writer = replace_where(_guarded(handle, swap, change.scope), where, note, (change.fence, NO_HEAD))
    kind = change.properties.get("backcast.change", "publish")
    faults.point(f"{kind}.before-commit")
    try:
        writer.save(swap.head.root.path)
    except Exception as error:
        if not is_jvm_error(error):
            raise
        raise _outcome(handle, change, error) from error
    faults.point(f"{kind}.after-commit")
    version = probe(handle, change.fence)
    found = read_commit(handle.jvm, handle.log, int(version)) if version is not None else None
    if version is None or found is None or found.note.get(_ATTEMPT) != attempt:
        # Delta passes a write by in silence whose transaction id it has already.
        raise landed_before(change.fence)
    return version


def rewritten(handle: DeltaHandle, version: str) -> Rewrite | None:
    """The files that such a commit wrote and those that it replaced; None for any other commit."""
    found = read_commit(handle.jvm, handle.log, int(version))
    if found is None or _ATTEMPT not in found.note:
        return None
    added, removed = (
        frozenset(handle.root.canonical(each["path"]) for each in actions) for actions in (found.adds, found.removes)
    )
    return Rewrite(added=added, removed=removed)


def _guarded(handle: DeltaHandle, swap: Swap, scope: Predicate) -> DataFrame:
    """The scope's rows once the change is made, from a query that fails when the live table has moved meanwhile."""
    head = swap.head
    guarded = _alarm(_session(handle.spark), head, scope)
    # Read with the head's columns, as readers would after an exact commit.
    adds = [*(live_add(swap.described, head, file) for file in swap.come), *(file.add for file in swap.stay)]
    return guarded.unionByName(head.frame(adds).where(to_column(scope, head.layout.types))) if adds else guarded


def _session(spark: SparkSession) -> SparkSession:
    """A session in which Delta rewrites files instead of masking rows: masked rows would forbid an undo."""
    session = spark.newSession()
    session.conf.set(_ZONE, str(spark.conf.get(_ZONE)))
    session.conf.set(_VECTORS, "false")
    return session


def _alarm(session: SparkSession, head: Version, scope: Predicate) -> DataFrame:
    """No row, with the table's columns; raises when the scope's rows lie elsewhere than at the head."""
    from pyspark.sql import functions as F

    def places(sign: int, **options: str) -> DataFrame:
        table = session.read.format("delta").options(**options).load(head.root.path)
        found = table.where(to_column(scope, head.layout.types)).groupBy(F.col("_metadata.file_path").alias(_PLACE))
        return found.agg(*_what_is_there(head)).withColumn(_SIGN, F.lit(sign))

    both = places(1).unionAll(places(-1, versionAsOf=str(head.number)))
    sums = both.groupBy(*(name for name in both.columns if name != _SIGN)).agg(F.sum(_SIGN).alias(_SIGN))
    moved = sums.where(F.col(_SIGN) != 0).coalesce(1)
    raised = F.raise_error(F.concat(F.lit(f"{_MOVED} "), F.col(_PLACE)))
    return moved.select(*(raised.cast(field.dataType).alias(field.name) for field in head.layout.schema.fields))


def _what_is_there(head: Version) -> list[Column]:
    """Aggregates that tell the rows of a file apart from other rows of the same file.

    A file never changes, so their number does it, unless deletion vectors can mask one row and unmask another.
    """
    from pyspark.sql import functions as F

    from backcast.spark.digest import digest_columns

    if "deletionVectors" in head.layout.features:
        return digest_columns(head.layout.schema)
    return [F.count(F.lit(1)).alias("backcast_rows")]


def _outcome(handle: DeltaHandle, change: Change, error: Exception) -> Conflict | Refused | OutcomeUnknown:
    if any(_MOVED in cause.message for cause in causes(error)):
        return Conflict("not landed: rows in scope came or went since", hint="try again", fence=change.fence)
    return outcome(handle, change, error)
