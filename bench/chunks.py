"""Promise: many small chunks cost little more than a few big ones, for they share jobs and commits."""

from __future__ import annotations

from backcast.model.pipeline import TableFormat
from bench.lake import Lake
from bench.measure import alternate
from bench.promise import Result, Sizes, ratio_result
from bench.run import StagedRun
from bench.tables import Shape

LIMIT = 1.2


def measure(lake: Lake, table_format: TableFormat, sizes: Sizes) -> list[Result]:
    """One table with a partition for each of the many chunks, restated by days and by years, in turn."""
    shape = Shape(sizes.rows, days=sizes.many_chunks, years=sizes.few_chunks)
    restatement = lake.restatement(table_format, shape)
    control = restatement.control()
    many, few = (StagedRun(restatement, control, name) for name in ("facts", "facts_by_year"))
    samples = alternate({"few": few.contender(), "many": many.contender()}, rounds=sizes.pairs, warm_up=sizes.warm_up)
    control.world.close()
    assert (many.chunks, few.chunks) == (sizes.many_chunks, sizes.few_chunks), (many.chunks, few.chunks)
    text = f"run of {many.chunks:,} chunks against {few.chunks}, {shape.rows:,} rows in {shape.partitions:,} partitions"
    commits = {"many": many.commits, "few": few.commits}
    return [ratio_result("chunks", text, LIMIT, samples["many"], samples["few"], commits=commits)]
