"""What a diff costs, against writing both sides to nowhere."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backcast.model.column import TimeColumn, TimeKind
from backcast.model.diff import Comparison, DiffRules
from backcast.model.time import Grain
from backcast.ports.comparing import Comparing
from backcast.spark.diff import SparkComparer
from bench.measure import Contender, alternate
from bench.promise import Result, Sizes, ratio_result
from bench.tables import Shape

if TYPE_CHECKING:
    from backcast.model.pipeline import TableFormat
    from bench.lake import Lake

SAME_LIMIT, CHANGED_LIMIT = 1.5, 2.5
"""Digests tell where rows must be compared. Where every partition differs all rows are exchanged and joined, which no
limit near that of a pass allows (ADR 19): what that costs is shown, and not promised.
"""
_DAYS = (TimeColumn(column="day", kind=TimeKind.DATE), Grain.DAY)
_ASKED = Comparing(DiffRules(key=("id",)), by_time=_DAYS, unique=True)
_ANYWHERE = "pmod(xxhash64(id, 9), 100) = 0"
"""One row of a hundred."""


class Sides:
    """A table and three others: one with the same rows, two in which every hundredth has another amount; in one of them
    those are the rows of one partition.
    """

    def __init__(self, lake: Lake, table_format: TableFormat, shape: Shape) -> None:
        tables, self._rows = lake.restatement(table_format, shape, "_diff").tables, shape.rows
        events = lake.spark.table(tables.name("events"))
        together = f"day = DATE '{shape.dates()[0]}'"
        self._changed = {"same": 0}
        for name, changed in (("moved", _ANYWHERE), ("moved_together", together)):
            amount = F.expr(f"CAST(IF({changed}, amount + 1, amount) AS DECIMAL(12,2))")
            tables.create(name, shape, events.withColumn("amount", amount))
            self._changed[name] = events.where(changed).count()
        names = {"same": "facts", "moved": "moved", "moved_together": "moved_together"}
        self._left = tables.read("events", tables.head("events"))
        self._right = {name: tables.read(table, tables.head(table)) for name, table in names.items()}

    def write(self, name: str) -> None:
        for side in (self._left, self._right[name]):
            side.write.format("noop").mode("overwrite").save()

    def diff(self, name: str) -> Comparison:
        found = SparkComparer().compare(self._left, self._right[name], _ASKED)
        changed = 0 if found.rows is None else found.rows.changed
        assert changed == self._changed[name], changed
        assert found.total == (self._rows, self._rows)
        return found


def measure(lake: Lake, table_format: TableFormat, sizes: Sizes) -> list[Result]:
    """Nothing changed: counts and digests. One row of a hundred, in one partition or anywhere: all three levels, with
    samples.
    """
    sides = Sides(lake, table_format, Shape(sizes.rows, sizes.diff_days))
    contenders = {
        f"{what.__name__} {name}": Contender(work=partial(what, name))
        for name in ("same", "moved", "moved_together")
        for what in (sides.write, sides.diff)
    }
    samples = alternate(contenders, rounds=sizes.pairs, warm_up=sizes.warm_up)
    rows = f"{sizes.rows:,} rows, against noop writes of both sides"
    told = {
        "same": (f"diff, nothing changed, {rows}", SAME_LIMIT),
        "moved_together": ("the same, 1 % of the rows changed: all of one partition", CHANGED_LIMIT),
        "moved": ("the same, 1 % of the rows changed: some in every partition", None),
    }
    return [
        ratio_result("diff", text, limit, samples[f"diff {name}"], samples[f"write {name}"])
        for name, (text, limit) in told.items()
    ]
