"""The rows that differ: by key in one join, as multisets in one grouping. Only sums and hashes leave Spark.

A key that occurs more than once on both sides would multiply in a join, so those keys are found first unless somebody
knows that one side has none, and their rows are compared as multisets.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backcast.model.diff import RowChange, RowCounts
from backcast.spark.diff_cells import CHANGED, FORMAT_ONLY, SAME, TOLERATED, state_sql
from backcast.spark.diff_parts import ALL
from backcast.spark.diff_sides import HASH, KEY_HASH, PART, Sides, value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import Column, DataFrame, Row

KIND, STATES, NET = "kind", "states", "net"
_ADDED, _REMOVED = 10, 11
KINDS: dict[int, RowChange] = {
    _ADDED: "added",
    _REMOVED: "removed",
    CHANGED: "changed",
    FORMAT_ONLY: "format_only",
    TOLERATED: "tolerated",
}
_SLICES = 16
"""Each part gives two samples of each kind for each slice of hashes."""
_ROWS_OF_A_HASH_TABLE = 1_000_000


@dataclass(slots=True)
class Found:
    """What the rows of the differing parts came to."""

    counts: dict[str, RowCounts] = field(default_factory=lambda: defaultdict(RowCounts))
    cells: dict[int, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0, 0]))
    """By position of the column: how many cells are in each state."""
    keyed: list[tuple[RowChange, str, int]] = field(default_factory=list)
    """Samples: kind, part and hash of the key."""
    multisets: list[tuple[RowChange, str, int]] = field(default_factory=list)
    """Samples: kind, part and hash of the row."""
    pairs: int = 0
    """Rows that were matched by key, counted as often as the join returned them."""
    doubled: int = 0

    @property
    def total(self) -> RowCounts:
        return sum(self.counts.values(), RowCounts())


def found_rows(sides: Sides, *, rows: tuple[int, int], unique: bool) -> Found:
    """`rows` of both sides, as digests counted them; `unique` says that no key occurs twice on the right side."""
    if not sides.key:
        found = Found()
        _take_multisets(found, sides, *(sides.hashed(each) for each in (sides.left, sides.right)))
        return found
    left, right = (sides.hashed(each) for each in (sides.left, sides.right))
    if unique:
        found = Found()
        _take_joined(found, sides, left, right, max(rows))
        if _none_doubled(found, rows):
            return found
    return _with_doubled(sides, left, right, max(rows))


def _none_doubled(found: Found, rows: tuple[int, int]) -> bool:
    """Each row was met once: a key with a rows here and b there is matched a times b."""
    total = found.total
    return (found.pairs + total.removed, found.pairs + total.added) == rows


def _with_doubled(sides: Sides, left: DataFrame, right: DataFrame, rows: int) -> Found:
    found = Found()
    doubled = doubled_keys(left, right).persist()
    try:
        found.doubled = doubled.count()
        if found.doubled:
            twice = [each.join(F.broadcast(doubled), KEY_HASH, "left_semi") for each in (left, right)]
            _take_multisets(found, sides, *twice)
            left, right = (each.join(F.broadcast(doubled), KEY_HASH, "left_anti") for each in (left, right))
        _take_joined(found, sides, left, right, rows)
    finally:
        doubled.unpersist()
    return found


def doubled_keys(left: DataFrame, right: DataFrame) -> DataFrame:
    """Hashes of keys that occur more than once on a side."""
    counted = (
        left.select(KEY_HASH, F.lit(1).alias("l"), F.lit(0).alias("r"))
        .unionByName(right.select(KEY_HASH, F.lit(0).alias("l"), F.lit(1).alias("r")))
        .groupBy(KEY_HASH)
        .agg(F.sum("l").alias("l"), F.sum("r").alias("r"))
    )
    return counted.where("l > 1 OR r > 1").select(KEY_HASH)


def joined(sides: Sides, left: DataFrame, right: DataFrame, rows: int | None = None) -> DataFrame:
    """Each key once, with the kind of its row and the states of its cells; unchanged ones too."""
    here, there = (
        each.select(*(F.col(name).alias(f"{prefix}_{name}") for name in each.columns))
        for prefix, each in (("l", left), ("r", right))
    )
    at_once = int(str(left.sparkSession.conf.get("spark.sql.shuffle.partitions"))) * _ROWS_OF_A_HASH_TABLE
    if rows is not None and rows <= at_once:
        # Half the time of sorting both sides, as long as a side's share of rows fits into memory.
        there = there.hint("shuffle_hash")
    same_key = [f"l_{value(at)} <=> r_{value(at)}" for at in sides.key_positions]
    met = here.join(there, F.expr(" AND ".join([f"l_{KEY_HASH} = r_{KEY_HASH}", *same_key])), "full_outer")
    states = _states(sides)
    differs = f"l_{HASH} <> r_{HASH}"
    worst = f"greatest({SAME}, {SAME}, {', '.join(name for name in states.values()) or SAME})"
    return met.withColumns(
        {name: F.expr(f"CASE WHEN {differs} THEN {sql} ELSE {SAME} END") for sql, name in states.items()}
    ).withColumns(
        {
            KIND: F.expr(
                f"CASE WHEN l_{HASH} IS NULL THEN {_ADDED} WHEN r_{HASH} IS NULL THEN {_REMOVED} ELSE {worst} END"
            ),
            PART: F.expr(f"coalesce(r_{PART}, l_{PART})"),
            KEY_HASH: F.expr(f"coalesce(r_{KEY_HASH}, l_{KEY_HASH})"),
        }
    )


def state(position: int) -> str:
    return f"s{position}"


def _states(sides: Sides) -> dict[str, str]:
    """The state of each cell as SQL, and the name of its column; keys are the same on both sides."""
    return {
        state_sql(f"l_{value(at)}", f"r_{value(at)}", each.dataType, sides.rules.tolerance.get(each.name)): state(at)
        for at, each in enumerate(sides.schema.fields)
        if each.name not in sides.key
    }


def _take_joined(found: Found, sides: Sides, left: DataFrame, right: DataFrame, rows: int) -> None:
    met = joined(sides, left, right, rows)
    positions = [at for at, name in enumerate(sides.schema.names) if name not in sides.key]
    cells = [
        F.expr(f"count_if({state(at)} = {each})").alias(f"{state(at)}_{each}")
        for at in positions
        for each in (TOLERATED, FORMAT_ONLY, CHANGED)
    ]
    pairs = F.expr(f"count_if({KIND} NOT IN ({_ADDED}, {_REMOVED}))").alias("pairs")
    for row in _sliced(met, KEY_HASH, f"{KIND} = {{}}", KINDS, [pairs, *cells]):
        found.pairs += row["pairs"]
        counts = {name: row[f"n{kind}"] for kind, name in KINDS.items()}
        found.counts[_name(sides, row)] += RowCounts(**counts)
        for at in positions:
            for each in (TOLERATED, FORMAT_ONLY, CHANGED):
                found.cells[at][each] += row[f"{state(at)}_{each}"]
        found.keyed += _samples(row, _name(sides, row), KINDS)


def net_rows(left: DataFrame, right: DataFrame) -> DataFrame:
    """How many more of each row the right side has; fewer is negative."""
    signed = left.select(PART, HASH, F.lit(-1).alias(NET)).unionByName(right.select(PART, HASH, F.lit(1).alias(NET)))
    return signed.groupBy(PART, HASH).agg(F.sum(NET).alias(NET)).where(f"{NET} <> 0")


def with_net(rows: DataFrame, left: DataFrame, right: DataFrame) -> DataFrame:
    """Those of the rows of which the sides do not have as many, with the difference; also where the part is null."""
    net = net_rows(left, right).select(F.col(PART).alias("net_part"), F.col(HASH).alias("net_hash"), NET)
    return rows.join(net, F.expr(f"{HASH} = net_hash AND {PART} <=> net_part"))


def _take_multisets(found: Found, sides: Sides, left: DataFrame, right: DataFrame) -> None:
    kinds: dict[int, RowChange] = {1: "added", -1: "removed"}
    for row in _sliced(net_rows(left, right), HASH, f"sign({NET}) = {{}}", kinds, [], weight=f"abs({NET})"):
        counts = {name: row[f"n{kind}"] for kind, name in kinds.items()}
        found.counts[_name(sides, row)] += RowCounts(**counts)
        found.multisets += _samples(row, _name(sides, row), kinds)


def _sliced(
    rows: DataFrame, hashed: str, is_kind: str, kinds: dict[int, RowChange], more: list[Column], weight: str = "1"
) -> list[Row]:
    """One row for each part and slice: how many of each kind, and the hashes of two of them."""
    told = []
    for kind in kinds:
        condition = is_kind.format(kind)
        told.append(F.expr(f"CAST(sum(CASE WHEN {condition} THEN {weight} ELSE 0 END) AS BIGINT)").alias(f"n{kind}"))
        told.append(F.expr(f"min(CASE WHEN {condition} THEN {hashed} END)").alias(f"a{kind}"))
        told.append(F.expr(f"max(CASE WHEN {condition} THEN {hashed} END)").alias(f"b{kind}"))
    grouped = rows.groupBy(PART, F.expr(f"pmod({hashed}, {_SLICES})").alias("slice"))
    # In order here and not in Spark, where it takes two more jobs.
    return sorted(grouped.agg(*told, *more).collect(), key=lambda row: (str(row[PART]), row["slice"]))


def _name(sides: Sides, row: Row) -> str:
    return sides.parts.name(row[PART]) or ALL


def _samples(row: Row, part: str, kinds: dict[int, RowChange]) -> Iterable[tuple[RowChange, str, int]]:
    for kind, name in kinds.items():
        for hashed in dict.fromkeys((row[f"a{kind}"], row[f"b{kind}"])):
            if hashed is not None:
                yield name, part, hashed
