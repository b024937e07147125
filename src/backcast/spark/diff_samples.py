"""A few rows that differ, looked up by the hashes that the comparison found: one scan, no sort of everything."""

from __future__ import annotations

from collections import defaultdict
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backcast.model.diff import Cell, RowChange, RowSample
from backcast.spark.diff_cells import SAME
from backcast.spark.diff_parts import ALL
from backcast.spark.diff_rows import KIND, KINDS, NET, Found, joined, state, with_net
from backcast.spark.diff_sides import HASH, KEY_HASH, PART, TEXTS, Sides

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

Sample = tuple[RowChange, str, int]
_ORDER: tuple[RowChange, ...] = ("changed", "added", "removed", "format_only", "tolerated")


def sampled(sides: Sides, found: Found, most: int) -> list[RowSample]:
    """Up to so many of each kind, from as many parts as possible; always the same ones of the same rows."""
    keyed, multisets = chosen(found.keyed, most), chosen(found.multisets, most)
    if not keyed and not multisets:
        return []
    parts = sorted({part for _, part, _ in (*keyed, *multisets)})
    near = sides.restricted(parts)
    shown = [*_of_keys(near, keyed), *_of_rows(near, multisets)]
    return sorted(shown, key=lambda each: (_ORDER.index(each.change), each.chunk, str(each.key)))


def chosen(samples: list[Sample], most: int) -> list[Sample]:
    """Of each kind the first of each part, then the second of each, until there are enough."""
    by_kind: dict[RowChange, dict[str, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for each in samples:
        by_kind[each[0]][each[1]].append(each)
    picked: list[Sample] = []
    for parts in by_kind.values():
        in_turn = chain.from_iterable(zip_longest(*parts.values()))
        picked += [each for each in in_turn if each is not None][:most]
    return picked


def _of_keys(sides: Sides, wanted: list[Sample]) -> list[RowSample]:
    if not wanted:
        return []
    left, right = (_with(sides, side, KEY_HASH, wanted) for side in (sides.left, sides.right))
    states = [F.col(state(at)) if name not in sides.key else F.lit(SAME) for at, name in enumerate(sides.schema.names)]
    kinds = {(hashed, kind) for kind, _, hashed in wanted}
    rows = (
        joined(sides, left, right)
        .where(F.col(KIND).isin(*KINDS))
        .select(PART, KEY_HASH, KIND, F.array(*states).alias("states"), f"l_{TEXTS}", f"r_{TEXTS}")
        .collect()
    )
    return [_keyed(sides, row) for row in rows if (row[KEY_HASH], KINDS[row[KIND]]) in kinds]


def _keyed(sides: Sides, row: Row) -> RowSample:
    change = KINDS[row[KIND]]
    before, after = row[f"l_{TEXTS}"], row[f"r_{TEXTS}"]
    names = sides.schema.names
    known = after or before
    whole = before is None or after is None
    cells = [
        Cell(column=name, before=before[at] if before else None, after=after[at] if after else None)
        for at, name in enumerate(names)
        if name not in sides.key and (whole or row["states"][at] != SAME)
    ]
    key = {name: known[names.index(name)] for name in sides.key}
    return RowSample(change=change, chunk=sides.parts.name(row[PART]) or ALL, key=key, cells=tuple(cells))


def _of_rows(sides: Sides, wanted: list[Sample]) -> list[RowSample]:
    """Rows as multisets: what one of them is, and how many more or fewer there are."""
    if not wanted:
        return []
    left, right = (_with(sides, side, HASH, wanted) for side in (sides.left, sides.right))
    one = left.unionByName(right).groupBy(PART, HASH).agg(F.first(TEXTS).alias(TEXTS))
    shown = []
    for row in with_net(one, left, right).collect():
        added = row[NET] > 0
        cells = tuple(
            Cell(column=name, before=None if added else text, after=text if added else None)
            for name, text in zip(sides.schema.names, row[TEXTS], strict=True)
        )
        kind: RowChange = "added" if added else "removed"
        part = sides.parts.name(row[PART]) or ALL
        shown.append(RowSample(change=kind, chunk=part, key={}, cells=cells, times=abs(row[NET])))
    return shown


def _with(sides: Sides, side: DataFrame, hashed: str, wanted: list[Sample]) -> DataFrame:
    # As one text: each value of a list is a call to the JVM of its own.
    hashes = ", ".join(f"{each}L" for _, _, each in wanted)
    return sides.hashed(side, sides.texts()).where(f"{hashed} IN ({hashes})")
