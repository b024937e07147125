"""SQL transforms: one query over the pipeline's inputs, which it names like tables."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest
from backcast.project.transform import Context, Inputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Views belong to the session, and jobs side by side may share it. The query is bound to its inputs before it returns.
_views = threading.Lock()


class SqlBody:
    """A query, called like a Python transform. It can only read: in brackets Spark takes nothing but a query.

    Besides its inputs it knows `:run_id`, `:execution`, `:window_start`, `:window_end` and `:clock`.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text.strip().removesuffix(";").rstrip()
        if not self.text:
            raise InvalidRequest(f"{name}: expected a query, got an empty file", hint="write a SELECT into it")

    def __call__(self, inputs: Inputs, ctx: Context) -> DataFrame:
        arguments = {
            "run_id": ctx.run_id,
            "execution": str(ctx.execution),
            "window_start": ctx.window.start,
            "window_end": ctx.window.end,
            "clock": ctx.clock(),
        }
        with _views, _as_views(ctx.spark, inputs):
            # The first line stays the first, so that Spark's error positions are those of the file.
            query = f"SELECT * FROM ({self.text}\n)"  # noqa: S608 - the user's own query is the point
            return ctx.spark.sql(query, args=arguments)


@contextmanager
def _as_views(spark: SparkSession, inputs: Inputs) -> Iterator[None]:
    """The inputs as temporary views; a view of the same name that was there before is there again afterwards."""
    catalog = spark._jsparkSession.sessionState().catalog()
    before = {name: spark.table(name) for name in inputs if catalog.getTempView(name).isDefined()}
    try:
        for name, frame in inputs.items():
            frame.createOrReplaceTempView(name)
        yield
    finally:
        for name in inputs:
            if name in before:
                before[name].createOrReplaceTempView(name)
            else:
                spark.catalog.dropTempView(name)
