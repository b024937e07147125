"""Tables as inputs: which part of one the chunks need, and how long a pinned version stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from backcast.model.column import TimeColumn
from backcast.model.log import span
from backcast.model.manifest import InputPin, RowCount, Survival
from backcast.model.partitions import RowFinder
from backcast.model.pipeline import Dataset, InputSpec
from backcast.model.run import Chunk, InputCount
from backcast.model.scope import Predicate, during
from backcast.model.table import FileList, PartitionField, TableFacts
from backcast.model.time import Interval


def input_predicate(spec: InputSpec, windows: Mapping[str, Interval]) -> Predicate:
    """The part of a table that the windows need; a partition column other than time is widened by a day for zone
    slack.
    """
    if not spec.windowed or not isinstance(spec.dataset, Dataset):
        return Predicate()
    dataset, needed = spec.dataset, tuple(windows.values())
    time_clauses = during((dataset.time,), needed).clauses
    if dataset.partition is None:
        return Predicate(clauses=time_clauses)
    around = tuple(_around(dataset.partition, window) for window in needed)
    return Predicate(clauses=time_clauses + during((dataset.partition,), around).clauses)


def _around(partition: TimeColumn, window: Interval) -> Interval:
    slack = timedelta(days=1 if partition.unit is None or partition.unit.value in ("hour", "day") else 366)
    return window.widened(slack, slack)


def rows_read(
    spec: InputSpec, files: FileList, fields: tuple[PartitionField, ...], windows: Mapping[str, Interval]
) -> dict[str, RowCount]:
    """How many rows each chunk reads, of files that hold all that any of them does; nothing for an input that is read
    whole. Rows of a partition that only follows from their time are never certain.
    """
    if not spec.windowed or not isinstance(spec.dataset, Dataset):
        return {}
    if not all(file.rows for file in files.files):
        return {}  # A file without statistics does not say how many it has.
    partition = spec.dataset.partition
    finder = RowFinder(files.files, fields, partition or spec.dataset.time)
    if partition is None:
        return {name: finder.rows_in(window) for name, window in windows.items()}
    found = {name: finder.rows_in(_around(partition, window)) for name, window in windows.items()}
    return {name: RowCount(least=0, most=each.most) for name, each in found.items()}


def input_counts(pins: Iterable[InputPin], chunk_id: str) -> tuple[InputCount, ...]:
    """What a chunk reads of each input that is read by window, as its pin tells."""
    found = []
    for pin in pins:
        if pin.log is not None and chunk_id in pin.log.slices:
            found.append(InputCount(input=pin.name, rows=span(pin.log.slices[chunk_id].ranges)))
        elif chunk_id in pin.read:
            read = pin.read[chunk_id]
            found.append(InputCount(input=pin.name, rows=read.most, exact=read.least == read.most))
    return tuple(found)


def read_by(chunks: Iterable[Chunk], pins: Iterable[InputPin]) -> tuple[InputCount, ...]:
    """What all of them have read of each input; what several read counts for each, but in a bound, which is never more
    than the input has.
    """
    whole = {pin.name: pin.rows for pin in pins}
    found: dict[str, InputCount] = {}
    for each in (one for chunk in chunks for one in chunk.inputs):
        before = found.get(each.input, InputCount(input=each.input, rows=0))
        exact = before.exact and each.exact
        rows = before.rows + each.rows
        most = rows if exact else min(rows, max(whole.get(each.input, rows), before.rows, each.rows))
        found[each.input] = InputCount(input=each.input, rows=most, exact=exact)
    return tuple(found.values())


def survival(facts: TableFacts, now: datetime, needed: timedelta) -> Survival:
    """OK until the owner's expiry may remove the version; AT RISK when that is sooner than the run is likely to end."""
    if facts.version is None:
        return Survival.OK
    if facts.referenced:
        return Survival.OK
    if facts.survives_until is None:
        return Survival.UNKNOWN
    return Survival.OK if facts.survives_until > now + needed else Survival.AT_RISK
