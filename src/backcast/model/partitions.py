"""From a file's partition path to the chunk it belongs to, without opening the file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import accumulate
from urllib.parse import unquote_plus

from backcast.model.column import TimeColumn, TimeKind
from backcast.model.manifest import ChunkPlan, RowCount
from backcast.model.scope import TimeClause
from backcast.model.table import FileRef, PartitionField, TableIdentity
from backcast.model.time import Grain, Interval, ceil_instant, floor_instant

_BY_TIME = ("identity", "hour", "day", "month", "year")
_PAD = "0000-01-01T00:00:00.000000"


def partition_value(path: str, name: str) -> str | None:
    """`2026-01-01` for field `day` in `day=2026-01-01/country=DE`; None when the field is missing or null."""
    for part in path.split("/"):
        field, _, value = part.partition("=")
        if unquote_plus(field) == name:
            return None if value == "null" else unquote_plus(value)
    return None


def first_value(text: str, transform: str, column: TimeColumn) -> str:
    """The smallest value of the column in the partition, as `TimeColumn.encode` writes it."""
    if transform == "identity" and column.kind in (TimeKind.STRING, TimeKind.INTEGER, TimeKind.DATE):
        return text
    if transform == "hour":
        text = text[:10] + "T" + text[11:13]
    instant = text.replace(" ", "T").removesuffix("Z").removesuffix("+00:00")
    full = instant + _PAD[len(instant) :]
    match column.kind:
        case TimeKind.DATE:
            return full[:10]
        case TimeKind.TIMESTAMP:
            return full + "Z"
        case _:
            return full


class ChunkFinder:
    """Which chunk a file of a table belongs to, by its value in the partition field that places it in time."""

    def __init__(self, chunks: tuple[ChunkPlan, ...], identity: TableIdentity) -> None:
        column = next(each.time for each in chunks[0].predicate.clauses if isinstance(each, TimeClause))
        self._column = column
        self._field = next(
            each for each in identity.partition_fields if each.source == column.column and each.transform in _BY_TIME
        )
        self._spans = sorted(
            (column.value(lower), column.value(upper), chunk.id)
            for chunk in chunks
            for clause in chunk.predicate.clauses
            if isinstance(clause, TimeClause) and clause.time == column
            for lower, upper in clause.ranges
        )
        self._starts = [span[0] for span in self._spans]

    def chunk_of(self, file: FileRef) -> str | None:
        """None for a file in no chunk, or without a value in the field."""
        text = partition_value(file.partition, self._field.name)
        if text is None:
            return None
        value = self._column.value(first_value(text, self._field.transform, self._column))
        index = bisect_right(self._starts, value) - 1
        if index >= 0 and value < self._spans[index][1]:  # type: ignore[operator]  # all of one column's type
            return self._spans[index][2]
        return None


def rows_by_chunk(files: Iterable[FileRef], chunks: tuple[ChunkPlan, ...], identity: TableIdentity) -> dict[str, int]:
    """Rows of the files per chunk. Files in no chunk are left out; every chunk is there, also with 0."""
    finder = ChunkFinder(chunks, identity)
    rows = {chunk.id: 0 for chunk in chunks}
    for file in files:
        chunk_id = finder.chunk_of(file)
        if chunk_id is not None:
            rows[chunk_id] += file.rows
    return rows


class RowFinder:
    """How many rows of a table's files lie in a window of time, by the files' partitions alone."""

    def __init__(self, files: Iterable[FileRef], fields: tuple[PartitionField, ...], column: TimeColumn) -> None:
        found = (each for each in fields if each.source == column.column and each.transform in _BY_TIME)
        self._column, self._field = column, next(found, None)
        self._anywhere = 0
        """Rows of files that no field places in time: a window may hold all of them, or none."""
        most, least = Counter[object](), Counter[object]()
        for file in files:
            text = None if self._field is None else partition_value(file.partition, self._field.name)
            if text is None or self._field is None:
                self._anywhere += file.rows
                continue
            start = column.value(first_value(text, self._field.transform, column))
            most[start] += file.rows
            least[start] += 0 if file.deletes else file.rows
        self._starts: list[object] = sorted(most)  # type: ignore[type-var]  # all of one column's type
        self._most = [0, *accumulate(most[each] for each in self._starts)]
        self._least = [0, *accumulate(least[each] for each in self._starts)]

    def rows_in(self, window: Interval) -> RowCount:
        first, last = self._boundary(window.start, floor_instant), self._place(window.end)
        whole = self._boundary(window.start, ceil_instant), self._boundary(window.end, floor_instant)
        least = max(0, self._least[whole[1]] - self._least[whole[0]])
        return RowCount(least=least, most=self._most[last] - self._most[first] + self._anywhere)

    def _boundary(self, moment: datetime, rounded: Callable[[datetime, Grain, str], datetime]) -> int:
        zone = self._column.zone if self._column.is_wall else "UTC"
        unit = self._unit
        return self._place(moment if unit is None else rounded(moment, unit, zone))

    def _place(self, moment: datetime) -> int:
        """How many partitions begin before the moment."""
        return bisect_left(self._starts, self._column.value(self._column.encode(moment)))  # type: ignore[type-var]

    @property
    def _unit(self) -> Grain | None:
        """What a partition holds more of than one value; a window takes single values whole, or not at all."""
        if self._field is None or self._field.transform == "identity":
            return None
        return Grain(self._field.transform)
