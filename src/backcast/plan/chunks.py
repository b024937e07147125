"""The scope and its chunks: whole partitions where the window allows, rows cut out of files where it does not."""

from __future__ import annotations

from collections import Counter

from backcast.errors import InvalidRequest
from backcast.model import time as t
from backcast.model.column import TimeColumn
from backcast.model.manifest import ChunkPlan
from backcast.model.pipeline import Cut, Dataset
from backcast.model.scope import Predicate, Scope, TimeClause, ValueClause, during
from backcast.model.table import PartitionField
from backcast.model.time import Grain, Interval
from backcast.plan.windows import Partitioning


def make_scope(
    windows: tuple[Interval, ...],
    where: tuple[ValueClause, ...],
    dataset: Dataset,
    how: Partitioning,
    fields: tuple[PartitionField, ...],
    cut: Cut,
    *,
    force_exact: bool = False,
) -> Scope:
    """Windows widened to whole partitions, or the scope marked exact when that is impossible or not wanted."""
    whole = {field.source for field in fields if field.transform == "identity"}
    cut_by_value = any(clause.column not in whole for clause in where)
    cut_by_time = not all(how.aligned(window) for window in windows)
    exact = force_exact or cut_by_value or not how.by_time or (cut_by_time and cut is Cut.EXACT)
    if not exact:
        windows = t.joined(how.widened(window) for window in windows)
    return Scope(windows=windows, predicate=_predicate(windows, where, dataset, how, exact=exact), exact=exact)


def make_chunks(
    scope: Scope, where: tuple[ValueClause, ...], dataset: Dataset, how: Partitioning
) -> tuple[ChunkPlan, ...]:
    """The scope cut along the dataset's grain, in order; never through a partition unless the scope is exact."""
    grain = dataset.grain if scope.exact else how.grain(dataset.grain)
    zone = dataset.time.zone if scope.exact else how.zone
    pieces = [piece for window in scope.windows for piece in t.cut(window, grain, zone)]
    chunks: list[ChunkPlan] = []
    names: Counter[str] = Counter()
    pending: Interval | None = None
    for piece in pieces:
        joined = (
            piece if pending is None or pending.end != piece.start else Interval(start=pending.start, end=piece.end)
        )
        predicate = _predicate((joined,), where, dataset, how, exact=scope.exact)
        if _is_void(predicate):
            pending = joined
            continue
        pending = None
        name = _name(joined, grain, zone)
        names[name] += 1
        suffix = f"@{joined.start:%Y-%m-%dT%H%MZ}" if names[name] > 1 else ""
        chunks.append(ChunkPlan(id=name + suffix, window=joined, predicate=predicate))
    if pending is not None and chunks:
        last = chunks[-1]
        chunks[-1] = last.model_copy(update={"window": Interval(start=last.window.start, end=pending.end)})
    if not chunks:
        raise InvalidRequest(
            "no value of the time column lies in the window", hint="give a window of at least one whole unit"
        )
    return tuple(chunks)


def _predicate(
    windows: tuple[Interval, ...], where: tuple[ValueClause, ...], dataset: Dataset, how: Partitioning, *, exact: bool
) -> Predicate:
    """Whole partitions are named by the partition column alone; exact rows by the time column, with the partition as
    a help.
    """
    if not exact:
        base = during((how.column,), windows)
    elif dataset.partition is None:
        base = during((dataset.time,), windows)
    else:
        around = tuple(how.widened(window) for window in windows)
        base = Predicate(
            clauses=during((dataset.time,), windows).clauses + during((dataset.partition,), around).clauses
        )
    for clause in base.clauses:
        if isinstance(clause, TimeClause):
            _check_order(clause.time, clause.ranges)
    return base.and_values(where)


def _check_order(column: TimeColumn, ranges: tuple[tuple[str, str], ...]) -> None:
    for lower, upper in ranges:
        if column.value(lower) > column.value(upper):  # type: ignore[operator]  # same type by construction
            raise InvalidRequest(
                f"the window starts or ends inside an hour that the clocks in {column.zone} repeat; "
                f"column {column.column} cannot tell both apart",
                hint="move the window to a full hour outside the repeated one",
            )


def _is_void(predicate: Predicate) -> bool:
    """No value of the column falls into the piece: the first of two repeated hours, seen by a wall clock."""
    return any(isinstance(clause, TimeClause) and not clause.ranges for clause in predicate.clauses)


def _name(window: Interval, grain: Grain, zone: str) -> str:
    there = window.start.astimezone(t.zone(zone))
    match grain:
        case Grain.HOUR:
            return there.strftime("%Y-%m-%dT%H") + ("Z" if zone == "UTC" else there.strftime("%z"))
        case Grain.DAY:
            return there.strftime("%Y-%m-%d")
        case Grain.WEEK:
            return there.strftime("%G-W%V")
        case Grain.MONTH:
            return there.strftime("%Y-%m")
        case Grain.YEAR:
            return there.strftime("%Y")
