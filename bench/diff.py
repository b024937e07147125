"""What a diff costs, against writing both sides to nowhere."""

from __future__ import annotations

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
    from pyspark.sql import DataFrame

    from backcast.model.pipeline import TableFormat
    from bench.lake import Lake

SAME_LIMIT, CHANGED_LIMIT = 1.5, 2.5
_DAYS = (TimeColumn(column="day", kind=TimeKind.DATE), Grain.DAY)
_ASKED = Comparing(DiffRules(key=("id",)), by_time=_DAYS, unique=True)
_CHANGED = "pmod(xxhash64(id, 9), 100) = 0"
"""One row of a hundred, anywhere."""


class Sides:
    """A table and two others: one with the same rows, one in which every hundredth has another amount."""

    def __init__(self, lake: Lake, table_format: TableFormat, shape: Shape) -> None:
        tables, self._rows = lake.restatement(table_format, shape, "_diff").tables, shape.rows
        events = lake.spark.table(tables.name("events"))
        moved = events.withColumn("amount", F.expr(f"CAST(IF({_CHANGED}, amount + 1, amount) AS DECIMAL(12,2))"))
        tables.create("moved", shape, moved)
        self.expected = events.where(_CHANGED).count()
        self.left, self.same, self.moved = (
            tables.read(name, tables.head(name)) for name in ("events", "facts", "moved")
        )

    def write(self, right: DataFrame) -> None:
        for side in (self.left, right):
            side.write.format("noop").mode("overwrite").save()

    def diff(self, right: DataFrame) -> Comparison:
        found = SparkComparer().compare(self.left, right, _ASKED)
        changed = 0 if found.rows is None else found.rows.changed
        assert changed == (0 if right is self.same else self.expected), changed
        assert found.total == (self._rows, self._rows)
        return found


def measure(lake: Lake, table_format: TableFormat, sizes: Sizes) -> list[Result]:
    """Nothing changed: counts and digests. One row of a hundred: all three levels, with samples."""
    sides = Sides(lake, table_format, Shape(sizes.rows, sizes.days))
    samples = alternate(
        {
            "write same": Contender(work=lambda: sides.write(sides.same)),
            "diff same": Contender(work=lambda: sides.diff(sides.same)),
            "write moved": Contender(work=lambda: sides.write(sides.moved)),
            "diff moved": Contender(work=lambda: sides.diff(sides.moved)),
        },
        rounds=sizes.pairs,
        warm_up=sizes.warm_up,
    )
    rows = f"{sizes.rows:,} rows, against noop writes of both sides"
    return [
        ratio_result("diff", f"diff, nothing changed, {rows}", SAME_LIMIT, samples["diff same"], samples["write same"]),
        ratio_result(
            "diff",
            "the same, 1 % of the rows changed, anywhere",
            CHANGED_LIMIT,
            samples["diff moved"],
            samples["write moved"],
        ),
    ]
